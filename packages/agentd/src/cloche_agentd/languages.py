"""Languages of run_code: which of them keep their state in this sandbox, and which run a program per call."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from . import javascript
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
_LANGUAGES: Final = ("python", "javascript", "typescript", "shell", "r")
_VERSION_BYTES: Final = 4096
_VERSION_TIMEOUT_S: Final = 10.0
SCRIPT_PREFIX: Final = ".cloche-run-"


@dataclass(frozen=True, slots=True)
class Runner:
    """How a language's program is started for one call; the script's path follows.

    `beside_user_files` where the code imports files of the working directory by relative names.
    """

    argv: tuple[str, ...]
    suffix: str
    beside_user_files: bool = False


@dataclass(frozen=True, slots=True)
class Engine:
    """What keeps the state of a language. Without `argv` it is a fork of init.

    `context` is the id of the default context that runs the language: typescript shares that of javascript.
    """

    language: str
    context: str
    argv: tuple[str, ...] = ()


PYTHON: Final = Engine("python", "python")


class Languages:
    """Finds the programs of the sandbox. What was found is looked at again when its file changes."""

    def __init__(self, config: AgentConfig, hooks: KeeperHooks, spawner: Spawner) -> None:
        self._config = config
        self._hooks = hooks
        self._spawner = spawner
        self._node_versions: dict[tuple[str, int], tuple[int, int]] = {}

    async def available(self, user: User) -> list[str]:
        """Return the languages that work in this sandbox."""
        return [name for name in _LANGUAGES if await self._way(name, user) is not None]

    async def stateful(self, user: User) -> list[str]:
        """Return those of them that keep their state from call to call."""
        return [name for name in _LANGUAGES if isinstance(await self._way(name, user), Engine)]

    async def choose(self, name: str, user: User) -> Engine | Runner:
        """Return what runs the language that a request names.

        Raises:
            AgentError: unsupported_language.
        """
        language = _ALIASES.get(name.lower())
        way = await self._way(language, user) if language is not None else None
        if way is None:
            available = await self.available(user)
            text = f"this sandbox does not run that language; it runs: {', '.join(available)}"
            raise AgentError("invalid_argument", text, "unsupported_language", available=available)
        return way

    async def choose_engine(self, name: str, user: User) -> Engine:
        """Return what keeps the state of the language that a request names.

        Raises:
            AgentError: unsupported_language.
        """
        way = await self.choose(name, user)
        if isinstance(way, Engine):
            return way
        available = await self.stateful(user)
        text = f"that language runs per call and keeps no state; contexts are kept for: {', '.join(available)}"
        raise AgentError("invalid_argument", text, "unsupported_language", available=available)

    async def _way(self, language: str, user: User) -> Engine | Runner | None:
        match language:
            case "python":
                return PYTHON
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

    async def _javascript(self, user: User) -> Engine | Runner | None:
        node = self._find("node", user)
        if node is None:
            return None
        if await self._node_version(node, user) >= javascript.STATEFUL_SINCE:
            return Engine("javascript", "javascript", javascript.argv(node))
        return Runner((node,), "cjs", beside_user_files=True)

    async def _typescript(self, user: User) -> Engine | Runner | None:
        node = self._find("node", user)
        version = await self._node_version(node, user) if node is not None else None
        if node is not None and version is not None and javascript.strips_types(version):
            return Engine("typescript", "javascript", javascript.argv(node))
        for program, arguments in (("deno", ("run", "--quiet", "--allow-all")), ("bun", ("run",)), ("tsx", ())):
            found = self._find(program, user)
            if found is not None:
                return Runner((found, *arguments), "ts", beside_user_files=True)
        if node is not None and version is not None and version >= (22, 6):
            return Runner((node, "--no-warnings", "--experimental-strip-types"), "ts", beside_user_files=True)
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
    """The code of one call as a file of the user: hidden, and removed when the call ends."""

    def __init__(self, hooks: KeeperHooks, user: User, code: str, folders: Sequence[str]) -> None:
        self._hooks = hooks
        self._user = user
        self._code = code.encode()
        self._folders = folders
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
