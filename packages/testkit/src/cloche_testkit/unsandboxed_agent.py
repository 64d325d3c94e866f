"""The real agent as an ordinary child process: NO ISOLATION, for tests only.

Commands and code that it is sent run on this host with the rights of the test. It gives the
tests of clients the true wire; only a real provider gives a sandbox.
"""

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self, cast

import anyio
from anyio import to_thread
from pydantic import SecretStr

from cloche_contract.errors import ProviderFailed
from cloche_contract.kernel import plugins
from cloche_contract.lifecycle import AgentEndpoint

_READY_WITHIN_S: Final = 20
_END_WITHIN_S: Final = 3.0
_running: Final[dict[subprocess.Popen[bytes], Path]] = {}


class UnsandboxedAgent:
    """One agent process, its temporary home, and where it answers."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, endpoint: AgentEndpoint) -> None:
        self._process = process
        self._folder = folder
        self.endpoint = endpoint

    @classmethod
    async def start(cls, sandbox_id: str, envs: Mapping[str, str]) -> Self:
        """Start an agent and wait until it answers.

        Raises:
            ProviderFailed: it ended or stayed silent.
        """
        agent = cls._spawn(sandbox_id, envs)
        try:
            await agent._until_ready()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await agent.stop()
            raise
        return agent

    @classmethod
    def _spawn(cls, sandbox_id: str, envs: Mapping[str, str]) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="cloche-"))  # short: a socket's path has 108 bytes
        home = folder / "home"
        home.mkdir()
        token = secrets.token_urlsafe(24)
        token_file = folder / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(token)
        socket = folder / "agent.sock"
        words = ["--sandbox-id", sandbox_id, "--socket", socket, "--token-file", token_file, "--home", home]
        words += [word for name, value in envs.items() for word in ("--env", f"{name}={value}")]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", agent_program(), *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={},
            start_new_session=True,
        )
        _running[process] = folder
        endpoint = AgentEndpoint(
            base_url="http://agent", socket_path=str(socket), access_token=SecretStr(token), version="1"
        )
        return cls(process, folder, endpoint)

    async def stop(self) -> None:
        """End the agent and everything that it started, and remove its home. May be called twice."""
        self.terminate()
        with anyio.move_on_after(_END_WITHIN_S + 1, shield=True):
            await to_thread.run_sync(self._reap)
        shutil.rmtree(self._folder, ignore_errors=True)

    def terminate(self) -> None:
        """Tell the agent to end."""
        if self._process.poll() is None:
            self._process.terminate()

    def _reap(self) -> None:
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        _running.pop(self._process, None)

    async def _until_ready(self) -> None:
        assert self._process.stdout is not None
        with anyio.move_on_after(_READY_WITHIN_S):
            # A thread that is abandoned ends with the process, which `start` then kills.
            line = await to_thread.run_sync(self._process.stdout.readline, abandon_on_cancel=True)
            if line == b"ready\n":
                return
        raise ProviderFailed


@atexit.register
def _end_the_rest() -> None:
    """A test that was interrupted must not leave an agent behind."""
    for process, folder in _running.items():
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def agent_program() -> Path:
    """The agent's start file, wherever the distribution that carries it is installed."""
    describe = cast("Callable[[], Mapping[str, str]]", plugins.load("cloche.agent", "agentd"))
    return Path(describe()["folder"]) / "__main__.py"
