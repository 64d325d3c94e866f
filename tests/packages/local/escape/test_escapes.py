"""The escape battery: every attempt is held, and works once the protections that stop it are taken out.

Run by whoever runs the tests; `test_ordinary_user.py` runs it again as an ordinary user where that is root.
Source: issue 2, "Shown by"; security.md; local-runtime.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from cloche_local import templates
from cloche_local.spec import Protections
from tests.packages.local.escape.attempts import ATTEMPTS, Attempt
from tests.packages.local.escape.host_facts import host_facts
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened

_ROOT_ONLY = pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")


@pytest.fixture(scope="module")
def facts(usable: None) -> Generator[dict[str, str]]:
    with (
        tempfile.TemporaryDirectory(prefix="cl-") as path,
        pytest.MonkeyPatch.context() as patch,
        host_facts(Path(path), patch) as facts,
    ):
        _show_folder(patch, facts["library_folder"])
        yield facts


@pytest.fixture(scope="module")
async def whole(facts: dict[str, str]) -> AsyncGenerator[Sandbox]:
    """A sandbox with every protection."""
    with tempfile.TemporaryDirectory(prefix="cl-") as path:
        async with opened(make_provider(Path(path))) as provider, made(provider, timeout=600) as sandbox:
            yield sandbox


def _show_folder(patch: pytest.MonkeyPatch, library_folder: str) -> None:
    """Let `base` show a library folder of ours, as code-interpreter-v1 shows the one that numpy is in."""
    found = templates.find_template(templates.BASE)
    assert found is not None
    template = replace(found, library_folder=library_folder)

    def only_this(_name: str) -> templates.Template:
        return template

    patch.setattr(templates, "find_template", only_this)


async def _try(folder: Path, attempt: Attempt, facts: dict[str, str], without: tuple[str, ...]) -> str:
    """What the attempt prints in a sandbox without the named protections."""
    protections = replace(Protections(), **dict.fromkeys(without, False))
    async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
        return await _attack(sandbox, attempt.program(facts), "user")


async def _attack(sandbox: Sandbox, code: str, user: str) -> str:
    if user == "root":
        ran = await sandbox.python(code, user="root")
        return ran.stdout.strip() or ran.stderr
    # The interpreter first: it is a fork of init and would keep what init failed to give up.
    lines = await sandbox.execute(code)
    text = "".join(str(line["text"]) for line in lines if line["type"] == "stdout").strip()
    return text or str(lines)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_the_user_of_a_sandbox_cannot(whole: Sandbox, facts: dict[str, str], attempt: Attempt) -> None:
    """Held in an interpreter, and in a program that is executed."""
    assert await _attack(whole, attempt.program(facts), "user") == "HELD"
    assert (await whole.python(attempt.program(facts))).stdout.strip() == "HELD"


@_ROOT_ONLY
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_root_of_a_sandbox_cannot(whole: Sandbox, facts: dict[str, str], attempt: Attempt) -> None:
    """Held against sandbox root too, whose capabilities are over its own namespace."""
    assert await _attack(whole, attempt.program(facts), "root") == "HELD"


_WITH_LAYERS = [attempt for attempt in ATTEMPTS if attempt.layers_for(host_root=HOST_ROOT)]


@pytest.mark.parametrize("attempt", _WITH_LAYERS, ids=lambda attempt: attempt.name)
async def test_without_its_protections_it_works(folder: Path, facts: dict[str, str], attempt: Attempt) -> None:
    """An attempt that cannot work would prove nothing."""
    layers = attempt.layers_for(host_root=HOST_ROOT)
    assert await _try(folder, attempt, facts, layers) == "OPEN"


_SINGLE = [
    pytest.param(attempt, layer, id=f"{attempt.name}-{layer}")
    for attempt in _WITH_LAYERS
    if len(attempt.layers_for(host_root=HOST_ROOT)) > 1
    for layer in attempt.layers_for(host_root=HOST_ROOT)
]


@pytest.mark.parametrize(("attempt", "layer"), _SINGLE)
async def test_one_layer_alone_holds(folder: Path, facts: dict[str, str], attempt: Attempt, layer: str) -> None:
    """Where several protections stop an attempt, each does it by itself: none is only for show."""
    others = tuple(name for name in attempt.layers_for(host_root=HOST_ROOT) if name != layer)
    assert await _try(folder, attempt, facts, others) == "HELD"
