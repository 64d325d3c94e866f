"""The escape battery: every attempt is held, and works once the protections that stop it are taken out.

Run by whoever runs the tests; `test_ordinary_user.py` runs it again as an ordinary user where that is root.
Source: issue 2, "Shown by"; issue 3, part 1; security.md; local-runtime.md.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from cloche_local import templates
from cloche_local.spec import Protections
from tests.packages.local.escape.attempts import Attempt
from tests.packages.local.escape.battery import ATTEMPTS, Workshop, attack, workshop
from tests.packages.local.escape.host_facts import host_facts
from tests.packages.local.sandboxes import HOST_ROOT

_ROOT_ONLY = pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")
_HELD = ("HELD", "ABSENT")


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
async def shop(facts: dict[str, str]) -> AsyncGenerator[Workshop]:
    async with workshop(Path(facts["state_folder"]).parent) as shop:
        yield shop


def _show_folder(patch: pytest.MonkeyPatch, library_folder: str) -> None:
    """Let `base` show a library folder of ours, as code-interpreter-v1 shows the one that numpy is in."""
    found = templates.find_template(templates.BASE)
    assert found is not None
    template = replace(found, library_folder=library_folder)

    def only_this(_name: str, _state_path: str | None = None) -> templates.Template:
        return template

    patch.setattr(templates, "find_template", only_this)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_the_user_of_a_sandbox_cannot(shop: Workshop, facts: dict[str, str], attempt: Attempt) -> None:
    """Held in an interpreter, which is a fork of init, and in a program that is executed."""
    whole = await shop.without()
    assert await attack(whole, attempt.program(facts), in_interpreter=True) in _HELD
    assert await attack(whole, attempt.program(facts)) in _HELD


@_ROOT_ONLY
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_root_of_a_sandbox_cannot(shop: Workshop, facts: dict[str, str], attempt: Attempt) -> None:
    """Held against sandbox root too, whose capabilities are over its own namespace."""
    assert await attack(await shop.without(), attempt.program(facts), user="root") in _HELD


_WITH_LAYERS = [attempt for attempt in ATTEMPTS if attempt.layers_for(host_root=HOST_ROOT)]


@pytest.mark.parametrize("attempt", _WITH_LAYERS, ids=lambda attempt: attempt.name)
async def test_without_its_protections_it_works(shop: Workshop, facts: dict[str, str], attempt: Attempt) -> None:
    """An attempt that cannot work would prove nothing.

    In the interpreter: it is a fork of init, and keeps what init failed to give up.
    """
    sandbox = await shop.without(*attempt.layers_for(host_root=HOST_ROOT))
    outcome = await attack(sandbox, attempt.program(facts), in_interpreter=True)
    if outcome == "ABSENT":
        pytest.skip(f"this kernel lets nobody do it: {attempt.name}")
    assert outcome == "OPEN"


def test_every_protection_is_explained() -> None:
    """Issue 3, part 1: the documentation names each protection with its reason, and none that is not there."""
    page = Path(__file__).parents[4] / "docs" / "explanation" / "isolation.md"
    table = page.read_text().partition("### Each protection")[2].partition("### ")[0]
    explained = re.findall(r"^\| `([a-z_]+)` \| \S", table, re.MULTILINE)
    assert sorted(explained) == sorted(field.name for field in fields(Protections))


_SINGLE = [
    pytest.param(attempt, layer, id=f"{attempt.name}-{layer}")
    for attempt in _WITH_LAYERS
    if len(attempt.layers_for(host_root=HOST_ROOT)) > 1
    for layer in attempt.layers_for(host_root=HOST_ROOT)
]


@pytest.mark.parametrize(("attempt", "layer"), _SINGLE)
async def test_one_layer_alone_holds(shop: Workshop, facts: dict[str, str], attempt: Attempt, layer: str) -> None:
    """Where several protections stop an attempt, each does it by itself: none is only for show."""
    others = (name for name in attempt.layers_for(host_root=HOST_ROOT) if name != layer)
    outcome = await attack(await shop.without(*others), attempt.program(facts), in_interpreter=True)
    assert outcome in _HELD
