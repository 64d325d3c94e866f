"""Languages of run_code other than the warm Python: a program per call, where the sandbox has it."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .config import AgentConfig, KeeperHooks, User
from .failures import AgentError, from_os_error
from .pumps import OutputPipe
from .spawner import Child, Launch, Spawner

_ALIASES: Final = {
    "": "python",
    "python": "python",
    "py": "python",
    "python3": "python",
    "javascript": "javascript",
    "js": "javascript",
    "typescript": "typescript",
    "ts": "typescript",
    "shell": "shell",
    "bash": "shell",
    "sh": "shell",
    "r": "r",
}
_PER_CALL: Final = ("javascript", "typescript", "shell", "r")
_VERSION_BYTES: Final = 4096
_VERSION_TIMEOUT_S: Final = 10.0
SCRIPT_PREFIX: Final = ".cloche-run-"


@dataclass(frozen=True, slots=True)
class Runner:
    """How a language's program is started; the script's path follows."""

    argv: tuple[str, ...]
    suffix: str


class Languages:
    """Finds the programs of the sandbox. What was found is looked at again when its file changes."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, spawner: Spawner) -> None:
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._node_versions: dict[tuple[str, int], tuple[int, int]] = {}

    async def available(self, user: User) -> list[str]:
        """Return the languages that work in this sandbox."""
        return ["python", *[name for name in _PER_CALL if await self._runner(name, user) is not None]]

    async def choose(self, name: str, user: User) -> tuple[str, Runner | None]:
        """Return the language that a request names, and its program; None is the warm interpreter.

        Raises:
            AgentError: unsupported_language.
        """
        language = _ALIASES.get(name.lower())
        if language == "python":
            return language, None
        runner = await self._runner(language, user) if language is not None else None
        if language is None or runner is None:
            available = await self.available(user)
            text = f"this sandbox does not run that language; it runs: {', '.join(available)}"
            raise AgentError("invalid_argument", text, "unsupported_language", available=available)
        return language, runner

    async def _runner(self, language: str, user: User) -> Runner | None:
        match language:
            case "shell":
                program = self._find("bash", user) or self._find("sh", user)
                return Runner((program,), "sh") if program else None
            case "r":
                program = self._find("Rscript", user)
                return Runner((program, "--vanilla"), "R") if program else None
            case "javascript":
                return await self._javascript(user)
            case _:
                return await self._typescript(user)

    async def _javascript(self, user: User) -> Runner | None:
        node = self._find("node", user)
        if node is None:
            return None
        # From 22.7 on node tells modules from scripts by itself; before, modules need their suffix.
        return Runner((node,), "js" if await self._node_version(node, user) >= (22, 7) else "cjs")

    async def _typescript(self, user: User) -> Runner | None:
        for program, arguments in (("deno", ("run", "--quiet", "--allow-all")), ("bun", ("run",)), ("tsx", ())):
            found = self._find(program, user)
            if found is not None:
                return Runner((found, *arguments), "ts")
        node = self._find("node", user)
        if node is not None and await self._node_version(node, user) >= (22, 6):
            return Runner((node, "--no-warnings", "--experimental-strip-types"), "ts")
        return None

    def _find(self, program: str, user: User) -> str | None:
        named = self._config.host_tools.get(program)
        folders = self._config.envs.get("PATH", self._config.path).split(":")
        candidates = [named] if named else [posixpath.join(folder, program) for folder in folders if folder]
        with self._hooks.become(user):
            for candidate in candidates:
                try:
                    mode = os.stat(candidate).st_mode
                except OSError:
                    continue
                if stat.S_ISREG(mode) and mode & 0o111:
                    return candidate
        return None

    async def _node_version(self, node: str, user: User) -> tuple[int, int]:
        try:
            key = (node, os.stat(node).st_mtime_ns)
        except OSError:
            return (0, 0)
        if key not in self._node_versions:
            text = await self._output_of((node, "--version"), user)
            numbers = text.strip().removeprefix("v").split(".")
            known = len(numbers) >= 2 and numbers[0].isdigit() and numbers[1].isdigit()
            self._node_versions[key] = (int(numbers[0]), int(numbers[1])) if known else (0, 0)
        return self._node_versions[key]

    async def _output_of(self, argv: Sequence[str], user: User) -> str:
        """Run a program of the sandbox and return the start of what it prints."""
        pieces: list[bytes] = []
        out, out_child = self._spawner.pipe(user, keeper_reads=True)
        pipe = OutputPipe(out, lambda data: pieces.append(data) if len(pieces) < 4 else None)
        null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        child: Child | None = None
        try:
            child = await self._spawner.spawn(Launch(user, ("/",), {}, tuple(argv)), [out_child, null])
            async with asyncio.timeout(_VERSION_TIMEOUT_S):
                await asyncio.shield(child.exit)
        except (AgentError, TimeoutError):
            if child is not None:
                await self._spawner.kill_tree(child)
        finally:
            os.close(out_child)
            os.close(null)
            pipe.drain()
            pipe.close()
        return b"".join(pieces)[:_VERSION_BYTES].decode("utf-8", "replace")


class Script:
    """The code of one call as a file: a hidden one in the working directory, so that relative imports resolve."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, user: User, code: str, folders: Sequence[str]) -> None:
        self._hooks = hooks
        self._user = user
        self._code = code.encode()
        self._folders = (*folders, config.tmp_dir)
        self.path = ""

    def write(self, suffix: str) -> None:
        """Write the file into the first folder that takes it.

        Raises:
            AgentError: none does.
        """
        failure: OSError | None = None
        name = f"{SCRIPT_PREFIX}{uuid.uuid4().hex}.{suffix}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._hooks.become(self._user):
            for folder in self._folders:
                path = posixpath.join(folder, name)
                try:
                    fd = os.open(path, flags, 0o600)
                except OSError as error:
                    failure = error
                    continue
                self.path = path
                try:
                    with os.fdopen(fd, "wb") as stream:
                        stream.write(self._code)
                except OSError as error:
                    self.remove()
                    raise from_os_error(error, folder) from error
                return
        raise from_os_error(failure or OSError(), self._folders[0])

    def remove(self) -> None:
        """Remove the file."""
        with self._hooks.become(self._user):
            try:
                os.unlink(self.path)
            except OSError:
                return
