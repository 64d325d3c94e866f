"""The network allowlist through the SDK and the tools, on real sandboxes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cloche_contract.errors import InvalidArgument, UnsupportedOperation
from cloche_contract.kernel.validate import validate_arguments
from cloche_sdk import AsyncSandbox, Denial, Doors, load_settings
from cloche_testkit.plane import ScriptedPlane
from tests.e2e.servers import local_is_refused
from tests.packages.sdk.tools import open_tools

_ASK = "curl -sS -m 15 http://denied.example/ > /dev/null; curl -sS -m 15 https://denied.example:8443/; true"
_DENIED = (Denial("denied.example:80", "denied.example"), Denial("denied.example:8443", "denied.example:8443"))


@pytest.fixture
def local_doors() -> Generator[Doors]:
    """Doors to local sandboxes with an allowlist from the operator's environment."""
    refused = local_is_refused()
    if refused is not None:
        pytest.skip(f"this machine cannot make a local sandbox: {refused}")
    with TemporaryDirectory(prefix="cl-") as folder:
        environ = {
            "HOME": folder,
            "ABX_PROVIDER": "local",
            "ABX_LOCAL_STATE_DIR": f"{folder}/state",
            "ABX_LOCAL_RUNTIME_DIR": f"{folder}/run",
            "ABX_LOCAL_EGRESS": "docs.example.org",
        }
        yield Doors(settings=load_settings(environ, home=Path(folder), workdir=Path(folder)), environ=environ)


async def test_e13_the_tool_result_names_the_rule_to_add(local_doors: Doors) -> None:
    """Faults E13: reported in the tool result, of a command, of code, and of a command that timed out."""
    async with open_tools(local_doors) as tools:
        result = await tools.call("run_command", command=_ASK)
        assert result["stop_reason"] == "exit"
        assert result["note"] == (
            "The network allowlist denied denied.example:80, denied.example:8443. Rules for the operator to add: "
            "denied.example, denied.example:8443 "
            "(abx sandbox network ID --allow RULE, or ABX_LOCAL_EGRESS before the sandbox is made)."
        )
        code = "import subprocess\nsubprocess.run(['curl', '-sS', 'http://denied.example/'])"
        assert "denied.example" in (await tools.call("run_code", code=code))["note"]
        late = await tools.call("run_command", command=f"{_ASK}; sleep 60", timeout=2)
        assert late["timed_out"]
        assert "denied.example" in late["note"]
        assert "note" not in await tools.call("run_command", command="true")


async def test_a_model_cannot_open_the_network() -> None:
    """Issue 3: policy comes from the operator only; create_sandbox has no such argument."""
    for name in ("egress", "network", "allow_net"):
        with pytest.raises(InvalidArgument):
            validate_arguments("sandbox", "create_sandbox", {name: ["example.com"]})


async def test_the_allowlist_is_given_at_create_and_changed_live(local_doors: Doors) -> None:
    async with await AsyncSandbox.create(egress=[], doors=local_doors) as sandbox:
        result = await sandbox.commands.run(_ASK)
        assert result.denied == _DENIED
        assert (await sandbox.run_code("1")).denied == ()
        handle = await sandbox.commands.start(_ASK)
        assert (await handle.wait()).denied == _DENIED
        assert await sandbox.update_network(allow=["denied.example", "denied.example:8443"]) == (
            "denied.example",
            "denied.example:8443",
        )
        # Allowed now; that nobody answers there is no denial.
        assert (await sandbox.commands.run(_ASK)).denied == ()
        assert await sandbox.update_network(remove=["denied.example"]) == ("denied.example:8443",)
        with pytest.raises(InvalidArgument):
            await sandbox.update_network(allow=["http://denied.example/"])
        with pytest.raises(InvalidArgument):
            await sandbox.update_network(allow="denied.example")


async def test_one_text_is_no_list_of_rules(local_doors: Doors) -> None:
    """Its letters would be rules."""
    with pytest.raises(InvalidArgument) as wrong:
        await AsyncSandbox.create(egress="docs.example.org", doors=local_doors)
    assert wrong.value.details == {"field": "egress", "rule": "type"}


async def test_a_provider_without_allowlists_refuses_one(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Decision D23: an option that cannot hold is refused, not ignored."""
    with pytest.raises(UnsupportedOperation) as refused:
        await AsyncSandbox.create(egress=["docs.example.org"], doors=doors)
    assert refused.value.details == {"capability": "egress"}
    sandbox = await AsyncSandbox.create(doors=doors)
    with pytest.raises(UnsupportedOperation):
        await sandbox.update_network(allow=["docs.example.org"])
    await sandbox.kill()
    await sandbox.close()
