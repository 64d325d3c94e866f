"""Run the in-sandbox agent on a bare interpreter, use all of it, and see that it imports nothing after its start.

Inside a sandbox the root is switched after the agent is loaded, so a later import would read the guest's files.
`nox -s agent` runs this.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import anyio
from pydantic import SecretStr

from cloche_contract.lifecycle import AgentEndpoint
from cloche_testkit.agent_client import TestAgent
from tests.architecture.workspace import packages

TOKEN = "bare-agent-token"
_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)
# `copy` tries to import this; the attempt is told as well.
_JYTHON = "org"
# Nothing of the environment is on the path, and every import is told.
_BARE = ("-I", "-S", "-X", "importtime")


async def use(endpoint: AgentEndpoint, home: Path) -> None:
    """One request of each kind, successes and refusals."""
    agent = TestAgent(endpoint)
    with anyio.fail_after(30):
        assert await agent.is_healthy()
        assert await agent.status_of("GET", "/metrics", token=TOKEN) == 200
        assert await agent.status_of("GET", "/metrics", token="wrong") == 401
        done = await agent.run("echo out; echo err >&2; exit 3")
        assert (done.stdout, done.stderr, done.exit_code) == (b"out\n", b"err\n", 3)
        assert (await agent.run("sleep 60", timeout_s=0.2)).error is not None
        await agent.write(f"{home}/a.txt", b"\x00\xff")
        assert await agent.read(f"{home}/a.txt") == b"\x00\xff"
        assert len(await agent.list(str(home))) == 1
        for code in ("x = 6 * 7\nx", "1 / 0", "display('a')", "open('b.txt', 'w').close()"):
            outcome = await agent.run_code(code)
            assert outcome.end["exit_code"] == (1 if outcome.error else 0)
            # An interpreter's standard error is part of the answer, so what it imports is told there.
            assert "import time:" not in outcome.stderr, outcome.stderr


def imported_by(log: Path) -> list[str]:
    """Every module that an interpreter said it imported, in its order."""
    return _IMPORTED.findall(log.read_text())


def wait_until_ready(output: IO[str]) -> None:
    for line in output:
        if line == "ready\n":
            return
    raise RuntimeError("the agent ended before it was ready")


def main() -> int:
    source = next(package.source for package in packages() if package.key == "agentd")
    with tempfile.TemporaryDirectory(prefix="cloche-agent-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "token").write_text(TOKEN)
        command = [sys.executable, *_BARE, str(source / "__main__.py"), "--socket", str(folder / "s")]
        command += ["--token-file", str(folder / "token"), "--home", str(folder / "home")]
        log = folder / "log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env={}
            )
        try:
            assert process.stdout is not None
            wait_until_ready(process.stdout)
            before = imported_by(log)
            endpoint = AgentEndpoint(
                base_url="http://agent", socket_path=str(folder / "s"), access_token=SecretStr(TOKEN), version="1"
            )
            started = time.monotonic()
            anyio.run(use, endpoint, folder / "home")
            seconds = time.monotonic() - started
        finally:
            process.terminate()
            process.wait(timeout=10)
        late = imported_by(log)[len(before) :]
    own = {name for name in before if name.startswith("cloche_agentd")}
    foreign = {name.partition(".")[0] for name in before} - set(sys.stdlib_module_names) - {"cloche_agentd", _JYTHON}
    sys.stdout.write(f"{len(before)} modules at the start, {len(own)} of them its own; used for {seconds:.1f} s.\n")
    problems = [f"imported late: {name}" for name in late] + [f"not standard library: {name}" for name in foreign]
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
