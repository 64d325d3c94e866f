"""All distributions carry one version, and depend on each other by it."""

from __future__ import annotations

import re

from tests.architecture.versions import bumped, files, version_in
from tests.architecture.workspace import ROOT, packages


def test_all_distributions_carry_the_same_version() -> None:
    """Architecture 3.3, "Versions and pins"."""
    assert len({version_in(path) for path in files()}) == 1


def test_siblings_are_required_within_their_minor_version() -> None:
    """Additive inside a minor, so single packages can be upgraded alone."""
    version = version_in(files()[0])
    for package in packages():
        extras = [line for lines in package.project.get("optional-dependencies", {}).values() for line in lines]
        for line in [*package.requirements, *extras]:
            if line.startswith("cloche"):
                sibling = line.partition(";")[0]
                form = rf"cloche[a-z-]*(\[[a-z,-]+\])?~={re.escape(version)}"
                assert re.fullmatch(form, sibling), (package.name, line)


def test_the_contract_has_a_version_of_its_own() -> None:
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?\n", (ROOT / "schemas/CONTRACT_VERSION").read_text())


def test_a_bump_moves_the_version_and_the_requirements_on_siblings() -> None:
    before = 'version = "0.1.0"\ndependencies = ["cloche-contract[mcp]~=0.1.0", "cloche-x~=0.1.0; m", "httpx>=1"]\n'
    after = 'version = "0.2.0"\ndependencies = ["cloche-contract[mcp]~=0.2.0", "cloche-x~=0.2.0; m", "httpx>=1"]\n'
    assert bumped(before, "0.2.0") == after


def test_every_distribution_names_its_licence_python_and_readme() -> None:
    """Architecture 3.11: each package has a README and py.typed."""
    for package in packages():
        assert package.project["license"] == "Apache-2.0", package.name
        assert package.project["requires-python"] in (">=3.10", ">=3.11"), package.name
        assert (package.folder / str(package.project["readme"])).read_text().startswith("# "), package.name
        assert (package.source / "py.typed").exists(), package.name


def test_every_dependency_is_pinned_for_ci() -> None:
    """Architecture 3.7, net 5: exact pins, nothing but name==version."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in pins)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins}
    for package in packages():
        for line in package.requirements:
            name = re.split(r"[\[<>=~!; ]", line)[0].lower()
            assert name.startswith("cloche") or re.sub(r"[-_.]+", "-", name) in pinned, (package.name, line)
