"""What is left of calls and sandboxes after a cancellation and after the end of the server: nothing."""

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from tests.e2e.servers import ABX, SERVER
from tests.packages.mcp_stdio.raw_client import ERAS, Era, raw_client

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ERAS)
async def test_m6_a_cancelled_command_leaves_no_process_and_gets_no_answer(era: Era, environ: dict[str, str]) -> None:
    """codex#20925."""
    marker = f"86399.{'1' if era == 'legacy' else '2'}7{os.getpid()}"
    async with raw_client(SERVER, environ, era) as client:
        await client.call("run_command", {"command": "true"})
        request_id = await client.post_call("run_command", {"command": f"sleep {marker} & sleep {marker}"})
        await until(lambda: len(processes(marker)) >= 2)
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}})
        await until(lambda: not processes(marker))
        assert (await client.call("run_command", {"command": "echo next"}))["structuredContent"]["stdout"] == "next\n"
    assert [frame for frame in client.frames if frame.get("id") == request_id] == []


@pytest.mark.parametrize("ending", ["end of stdin", "SIGTERM", "SIGINT"])
async def test_m3_the_end_of_the_server_is_the_end_of_its_sandboxes(
    ending: str, environ: dict[str, str], provider: str, tmp_path: Path
) -> None:
    """Seed 001; checklist 320: with a command running and a create in flight."""
    marker = f"86398.{len(ending)}7{os.getpid()}"
    async with raw_client(SERVER, environ) as client:
        await client.call("create_sandbox", {})
        await client.call("create_sandbox", {})
        await client.post_call("run_command", {"command": f"sleep {marker}"})
        await until(lambda: len(processes(marker)) >= 1)
        await client.post_call("create_sandbox", {})
        if ending == "end of stdin":
            await client.close_stdin()
        else:
            client.process.send_signal(getattr(signal, ending))
        with anyio.fail_after(6):
            assert await client.process.wait() == 0
    assert processes(marker) == []
    assert await sandboxes_left(provider, environ, tmp_path) == []


async def sandboxes_left(provider: str, environ: dict[str, str], folder: Path) -> list[str]:
    if provider == "local":
        done = await anyio.run_process([ABX, "sandbox", "list", "--json"], env=environ)
        return [sandbox["sandbox_id"] for sandbox in json.loads(done.stdout)["sandboxes"]]
    asked = [json.loads(line) for line in (folder / "requests").read_text(encoding="utf-8").splitlines()]
    made = sum(1 for each in asked if each["operation"] == "create")
    killed = {each["arguments"]["sandbox_id"] for each in asked if each["operation"] == "kill"}
    return ["not killed"] * (made - len(killed))


def processes(marker: str) -> list[str]:
    """Command lines of this machine's processes that hold the marker; sandboxes hide nothing from the host."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0].endswith("sleep") and marker in words:
                found.append(" ".join(words))
    return found


async def until(holds: object) -> None:
    """Return when it holds: other processes change the table, so there is no event to wait on."""
    assert callable(holds)
    with anyio.fail_after(40):
        while not holds():
            await anyio.sleep(0.02)
