"""What the distributions need: the lean base, its extras, and the closure of the contract."""

from __future__ import annotations

import operator

import pytest
from packaging.requirements import Requirement

from tests.architecture.readme_example import example_of
from tests.architecture.standalone import closure, normal
from tests.architecture.workspace import Package, packages

CLI = next(package for package in packages() if package.key == "cli")
EXTRAS: dict[str, list[str]] = {name: list(lines) for name, lines in CLI.project["optional-dependencies"].items()}


def test_the_contract_needs_pydantic_jsonschema_and_referencing_and_theirs() -> None:
    """The issue: whoever wants the types gets nothing else."""
    (contract,) = [package for package in packages() if package.key == "contract"]
    assert closure(contract.requirements) == closure(["pydantic", "jsonschema", "referencing"])


def test_the_base_of_cloche_brings_no_mcp_library_and_no_server() -> None:
    """Base `cloche` is lean: `abx run` needs no server."""
    ours = {normal(package.name): package for package in packages()}
    found: set[str] = set()
    waiting = list(CLI.requirements)
    while waiting:
        line = Requirement(waiting.pop())
        name = normal(line.name)
        if name not in found and (line.marker is None or line.marker.evaluate()):
            found.add(name)
            waiting += ours[name].requirements if name in ours else []
    third_parties = closure(sorted(found - set(ours)))
    assert third_parties & {"mcp", "starlette", "uvicorn", "cryptography", "numpy", "docker"} == set()


def test_the_extra_all_is_every_extra() -> None:
    (line,) = EXTRAS["all"]
    assert Requirement(line).extras == set(EXTRAS) - {"all"}


def test_every_extra_that_is_promised_is_there() -> None:
    """The issue, item 5; `docker` when there is a package for it."""
    promised = {"mcp", "http", "code-interpreter", "compat", "all"}
    has_docker = any(package.key == "docker-manager" for package in packages())
    assert set(EXTRAS) == promised | ({"docker"} if has_docker else set())


@pytest.mark.parametrize("package", packages(), ids=operator.attrgetter("key"))
def test_every_readme_begins_with_an_example_that_standalone_can_run(package: Package) -> None:
    assert example_of(package).source.strip()
