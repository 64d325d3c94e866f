"""A machine that cannot isolate: the model learns why and what to do, and nothing runs.

The machine is real: a user namespace in which the kernel allows no further one.
"""

import json
from pathlib import Path

import anyio
import pytest

from tests.e2e.servers import SERVER
from tests.packages.mcp_stdio.raw_client import ERAS, Era, clean_environ, raw_client

pytestmark = pytest.mark.anyio

_BLOCKED = ["unshare", "-U", "-r", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]


async def blocked(command: list[str]) -> list[str]:
    """The command as it runs on a machine without user namespaces."""
    done = await anyio.run_process([*_BLOCKED, "true"], check=False)
    if done.returncode != 0:
        pytest.skip(f"no namespace can be made in which others are blocked: {done.stderr.decode().strip()}")
    return [*_BLOCKED, *command]


@pytest.mark.parametrize("era", ERAS)
async def test_e16_a_blocked_machine_is_named_with_cause_and_fix(era: Era, tmp_path: Path) -> None:
    """srt#74 and others: an obscure error of a program that the user never heard of, or a silent failure."""
    async with raw_client(await blocked(SERVER), clean_environ(HOME=str(tmp_path)), era) as client:
        assert (await client.request("tools/list"))["result"]["tools"]
        result = await client.call("run_code", {"code": "print(1)"})
    said = json.loads(result["content"][0]["text"])
    assert result["isError"]
    assert (said["code"], said["details"]) == ("backend_unavailable", {"cause": "user_namespaces_disabled"})
    assert "max_user_namespaces" in said["suggestion"]


async def test_e17_nothing_runs_without_isolation(tmp_path: Path) -> None:
    """vellum-assistant PR#155: it ran unsandboxed, with a warning."""
    trace = tmp_path / "trace"
    async with raw_client(await blocked(SERVER), clean_environ(HOME=str(tmp_path))) as client:
        for tool, arguments in {
            "create_sandbox": {},
            "run_code": {"code": f"open({str(trace)!r}, 'w')"},
            "run_command": {"command": f"touch {trace}"},
            "write_file": {"path": str(trace), "content": "x"},
        }.items():
            result = await client.call(tool, arguments)
            assert json.loads(result["content"][0]["text"])["code"] == "backend_unavailable", tool
    assert not trace.exists()
