"""The static methods by id: seed 000, "Implementation and verification"."""

from __future__ import annotations

import inspect

import pytest

from cloche_contract.errors import ConfigurationInvalid, InvalidArgument, ProviderMismatch, SandboxNotFound
from cloche_sdk import AsyncSandbox, Doors
from cloche_testkit.markers import MARKERS
from cloche_testkit.plane import ScriptedPlane

OVERRIDES = {"region", "provider", "api_key", "base_url", "sandbox_domain"}


async def _made(doors: Doors) -> str:
    sandbox = await AsyncSandbox.create(doors=doors)
    await sandbox.close()
    return sandbox.sandbox_id


@pytest.mark.parametrize("name", ["get_info_by_id", "set_timeout_by_id", "kill_by_id"])
def test_by_id_methods_and_their_sync_variants_take_the_same_overrides(name: str) -> None:
    """Seed 000, rules 100 to 105."""
    kinds = [inspect.signature(getattr(AsyncSandbox, name + suffix)).parameters for suffix in ("", "_sync")]
    assert list(kinds[0]) == list(kinds[1])
    assert set(kinds[0]) >= OVERRIDES


async def test_info_by_id_asks_for_metadata_and_closes(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 35 to 37, 106."""
    made = await _made(doors)
    scripted_plane.script.requests.clear()
    info = await AsyncSandbox.get_info_by_id(f"scripted:{made}", sandbox_domain="unused.example", doors=doors)
    assert info.sandbox_id == made
    assert scripted_plane.script.operations() == ["get"]
    assert scripted_plane.opened == scripted_plane.closed


def test_the_sync_variants_do_the_same(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rule 100: without a running loop."""
    with pytest.raises(SandboxNotFound):
        AsyncSandbox.get_info_by_id_sync("sb9", doors=doors)
    with pytest.raises(SandboxNotFound):
        AsyncSandbox.set_timeout_by_id_sync("sb9", 60, doors=doors)
    with pytest.raises(SandboxNotFound):
        AsyncSandbox.kill_by_id_sync("sb9", doors=doors)
    assert scripted_plane.script.operations() == ["get", "set_timeout", "kill"]
    assert scripted_plane.opened == scripted_plane.closed == 3


async def test_the_sync_variants_work_while_a_loop_runs(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Notebooks run a loop in the thread that calls."""
    made = await _made(doors)
    assert AsyncSandbox.get_info_by_id_sync(made, doors=doors).sandbox_id == made


async def test_credentials_reach_the_provider_as_settings(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 101, 102."""
    given = doors.override(sandbox_api_key="k", sandbox_base_url="https://a.example", region="r1")
    assert given.settings.values["sandbox_api_key"] == "k"
    assert given.settings.values["sandbox_base_url"] == "https://a.example"
    assert given.settings.values["region"] == "r1"


async def test_a_contradicting_provider_is_refused(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Systems facts 2.5."""
    with pytest.raises(ProviderMismatch):
        await AsyncSandbox.kill_by_id("scripted:sb1", provider="local", doors=doors)
    assert scripted_plane.script.operations() == []


@pytest.mark.parametrize("timeout", [0, 86_401, True, "60", 1.5])
async def test_a_wrong_lifetime_is_refused_before_the_platform_is_asked(
    doors: Doors, scripted_plane: ScriptedPlane, timeout: object
) -> None:
    """Seed 000, rules 78, 79, 81."""
    with pytest.raises(InvalidArgument) as caught:
        await AsyncSandbox.set_timeout_by_id("sb1", timeout, doors=doors)  # pyright: ignore[reportArgumentType]  wrong on purpose
    assert caught.value.details["field"] == "timeout"
    with pytest.raises(InvalidArgument):
        await AsyncSandbox.create(timeout=timeout, doors=doors)  # pyright: ignore[reportArgumentType]  wrong on purpose
    assert scripted_plane.script.operations() == []


async def test_a_refusal_names_argument_rule_and_limit_and_no_value(doors: Doors) -> None:
    """D12."""
    with pytest.raises(InvalidArgument) as caught:
        await AsyncSandbox.create(timeout=86_401, doors=doors)
    assert str(caught.value) == "timeout: must be at most 86400."
    with pytest.raises(InvalidArgument) as caught:
        await AsyncSandbox.kill_by_id("scripted:", doors=doors)
    assert str(caught.value) == "sandbox_id: is shorter than allowed; characters at least: 1."


async def test_create_sends_only_what_was_given(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rule 54."""
    async with await AsyncSandbox.create(doors=doors):
        assert scripted_plane.script.of("create") == [{"template": "base", "timeout": 300}]
    assert scripted_plane.alive == []


async def test_a_failed_create_closes_what_it_opened(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """F22, L21: nothing leaks when it fails."""
    scripted_plane.script.fail_next("create", ConfigurationInvalid(setting="ABX_PROVIDER"))
    with pytest.raises(ConfigurationInvalid):
        await AsyncSandbox.create(doors=doors)
    assert scripted_plane.opened == scripted_plane.closed == 1


async def test_info_holds_nothing_confidential(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 40 to 48."""
    scripted_plane.marked = True
    sandbox = await AsyncSandbox.create(doors=doors)
    try:
        shown = repr(sandbox.info) + repr(await sandbox.refresh_info()) + repr(await AsyncSandbox.list(doors=doors))
    finally:
        await sandbox.kill()
        await sandbox.close()
    assert not [marker for marker in MARKERS.values() if marker in shown]
