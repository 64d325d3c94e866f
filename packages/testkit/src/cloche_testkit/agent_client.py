"""A small client of the agent's wire, for the conformance suite and for tests of an agent.

It hides nothing: every answer keeps its status, its error code and its last event.
"""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlencode

from pydantic import MISSING

from cloche_contract.lifecycle import AgentEndpoint
from cloche_contract.wire import connect as framing
from cloche_contract.wire import ndjson
from cloche_testkit._http import ConnectionCut, Response, request

_JSON: Final = {"Content-Type": "application/json"}


class AgentRefused(Exception):
    """The agent answered with an error.

    `code` is the code of the error catalogue, None where the answer carries none.
    """

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"the agent answered {status}")
        self.status = status
        self.body = body
        self.code = _catalogue_code(body)


@dataclass
class CommandOutcome:
    """A command from its first to its last event.

    `end` is the last event, None when the stream failed; then `error` is the error that ended it.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    end: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        """The status that the command ended with."""
        assert self.end is not None, f"the command did not end by itself: {self.error}"
        return int(self.end.get("exitCode", 0))

    @property
    def error_code(self) -> str | None:
        """Code of the error catalogue, else of the Connect protocol."""
        return None if self.error is None else _catalogue_code(self.error) or str(self.error.get("code"))


@dataclass
class CodeOutcome:
    """Everything that one execution of code sent back."""

    stdout: str = ""
    stderr: str = ""
    results: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    error: Mapping[str, Any] | None = None
    end: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class TaskOutcome:
    """A background task, and a part of each of its streams."""

    state: str
    stop_reason: str | None
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stdout_size: int
    stderr_size: int


class TestAgent:
    """The agent of one sandbox."""

    __test__ = False  # not a test class

    def __init__(self, endpoint: AgentEndpoint) -> None:
        self.endpoint = endpoint
        routing = {} if endpoint.headers is MISSING else endpoint.headers
        self._headers = {"X-Access-Token": endpoint.access_token.get_secret_value(), **routing}

    async def is_healthy(self) -> bool:
        """Whether it answers GET /health."""
        try:
            async with self._send("GET", "/health") as response:
                return response.status in (200, 204)
        except ConnectionCut:
            return False

    async def status_of(self, method: str, target: str, *, token: str | None) -> int:
        """HTTP status of one request, with another token or without one."""
        headers = {name: value for name, value in self._headers.items() if name != "X-Access-Token"}
        if token is not None:
            headers["X-Access-Token"] = token
        async with request(self.endpoint, method, target, headers=headers) as response:
            return response.status

    async def call(self, path: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """One unary request.

        Raises:
            AgentRefused: it answered with an error.
        """
        async with self._send("POST", path, json.dumps(message).encode(), _JSON) as response:
            return await _document(response)

    async def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        envs: Mapping[str, str] | None = None,
        timeout_s: float | None = 30,
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandOutcome:
        """Run a shell command to its end. Cancelling the call kills the command.

        Raises:
            ConnectionCut: the stream ended without its last frame.
        """
        process: dict[str, Any] = {"cmd": "/bin/sh", "args": ["-c", command], "envs": dict(envs or {})}
        if cwd is not None:
            process["cwd"] = cwd
        headers = {"Content-Type": framing.STREAM_CONTENT_TYPE, "Connect-Protocol-Version": "1"}
        headers["Cloche-Kill-On-Disconnect"] = "1"
        if timeout_s is not None:
            headers["Connect-Timeout-Ms"] = str(int(timeout_s * 1000))
        outcome = CommandOutcome()
        body = framing.encode_message({"process": process})
        async with self._send("POST", "/process.Process/Start", body, headers) as response:
            if response.status != 200:
                outcome.error = json.loads(await response.body())
                return outcome
            async for event in _frames(response):
                _note_event(outcome, event, on_output)
        return outcome

    async def run_code(
        self,
        code: str,
        *,
        language: str | None = None,
        timeout_s: float = 30,
        envs: Mapping[str, str] | None = None,
        on_output: Callable[[], object] | None = None,
    ) -> CodeOutcome:
        """Run code in the default context of a language. Cancelling the call ends it.

        Raises:
            AgentRefused: not started, for example because the language is missing.
            ConnectionCut: the answer ended without its last line.
        """
        message = {"code": code, "language": language, "env_vars": envs, "timeout_ms": int(timeout_s * 1000)}
        headers = {**_JSON, "E2b-Sandbox-Port": "49999", "Cloche-Kill-On-Disconnect": "1"}
        outcome = CodeOutcome()
        async with self._send("POST", "/execute", json.dumps(message).encode(), headers) as response:
            if response.status != 200:
                await _document(response)
            async for line in _lines(response):
                _note_line(outcome, line)
                if on_output is not None and line["type"] in ("stdout", "stderr"):
                    on_output()
        if not outcome.end:
            raise ConnectionCut
        return outcome

    async def write(self, path: str, data: bytes, *, mode: str | None = None) -> Mapping[str, Any]:
        """Write a file; the answer describes it."""
        query = {"path": path} if mode is None else {"path": path, "mode": mode}
        headers = {"Content-Type": "application/octet-stream"}
        async with self._send("POST", f"/files?{urlencode(query)}", data, headers) as response:
            return cast("Sequence[Mapping[str, Any]]", await _document(response))[0]

    async def read(self, path: str) -> bytes:
        """Read a file.

        Raises:
            AgentRefused: there is none, or it is not a file.
        """
        async with self._send("GET", f"/files?{urlencode({'path': path})}") as response:
            if response.status != 200:
                await _document(response)
            return await response.body()

    async def read_range(self, path: str, first: int, last: int) -> tuple[str, bytes]:
        """Bytes `first` to `last` of a file, and where they lie: `bytes FIRST-LAST/SIZE`.

        Raises:
            AgentRefused: there is none, or none of its bytes is in that range.
        """
        headers = {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
        async with self._send("GET", f"/files?{urlencode({'path': path})}", b"", headers) as response:
            if response.status != 206:
                await _document(response)
            return response.headers.get("content-range", ""), await response.body()

    async def upload_part(
        self, path: str, data: bytes, *, transfer: str, offset: int = 0, last: bool = True
    ) -> Mapping[str, Any]:
        """Append to a transfer; with `last` the file is replaced. The answer tells size, sha256 and complete.

        Raises:
            AgentRefused: the part does not follow what is there, or the file cannot be written.
        """
        query = urlencode({"path": path, "transfer": transfer, "offset": offset, "last": int(last)})
        headers = {"Content-Type": "application/octet-stream"}
        async with self._send("POST", f"/cloche/upload?{query}", data, headers) as response:
            return cast("Mapping[str, Any]", await _document(response))

    async def start_task(self, task_id: str, command: str, *, timeout_s: int = 60, **more: object) -> Mapping[str, Any]:
        """Start a background task; the answer is its summary.

        Raises:
            AgentRefused: it was not started.
        """
        message = {"task_id": task_id, "command": command, "timeout": timeout_s, **more}
        return await self.call("/cloche.Tasks/Start", message)

    async def read_task(self, task_id: str, **more: object) -> TaskOutcome:
        """A task as it is now, and a part of its streams."""
        return task_outcome(await self.call("/cloche.Tasks/Get", {"task_id": task_id, **more}))

    async def ended_task(self, task_id: str) -> TaskOutcome:
        """Wait for the end of a task; returns it with its streams from their beginning."""
        sizes: dict[str, object] = {}
        while True:
            found = await self.read_task(task_id, wait_ms=20_000, **sizes)
            if found.state != "running":
                return await self.read_task(task_id)
            sizes = {"stdout_offset": found.stdout_size, "stderr_offset": found.stderr_size}

    async def cancel_task(self, task_id: str) -> TaskOutcome:
        """End a task and everything that it started."""
        return task_outcome(await self.call("/cloche.Tasks/Cancel", {"task_id": task_id}))

    async def list(self, path: str) -> Sequence[Mapping[str, Any]]:
        """The entries of a directory."""
        answer = await self.call("/filesystem.Filesystem/ListDir", {"path": path, "depth": 1})
        return answer.get("entries", [])

    @asynccontextmanager
    async def _send(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Response]:
        async with request(
            self.endpoint, method, target, headers={**self._headers, **(headers or {})}, body=body
        ) as response:
            yield response


async def _document(response: Response) -> Any:
    body = json.loads(await response.body() or b"{}")
    if response.status >= 300:
        raise AgentRefused(response.status, body)
    return body


async def _frames(response: Response) -> AsyncIterator[Mapping[str, Any]]:
    decoder = framing.StreamDecoder()
    async for chunk in response.chunks:
        for frame in decoder.feed(chunk):
            yield frame
    if not decoder.finished:
        raise ConnectionCut


async def _lines(response: Response) -> AsyncIterator[Mapping[str, Any]]:
    decoder = ndjson.LineDecoder()
    async for chunk in response.chunks:
        for line in decoder.feed(chunk):
            yield line


def _note_event(outcome: CommandOutcome, message: Mapping[str, Any], on_output: Callable[[bytes], None] | None) -> None:
    if "error" in message:
        outcome.error = message["error"]
    event = message.get("event", {})
    for name, text in event.get("data", {}).items():
        data = base64.b64decode(text)
        setattr(outcome, name, getattr(outcome, name) + data)
        if on_output is not None:
            on_output(data)
    if "end" in event:
        outcome.end = event["end"]


def task_outcome(report: Mapping[str, Any]) -> TaskOutcome:
    """A report of a task, taken apart."""
    task, stdout, stderr = report["task"], report["stdout"], report["stderr"]
    return TaskOutcome(
        state=str(task["state"]),
        stop_reason=task.get("stop_reason"),
        exit_code=task.get("exit_code"),
        stdout=base64.b64decode(stdout["data"]),
        stderr=base64.b64decode(stderr["data"]),
        stdout_size=int(stdout["size"]),
        stderr_size=int(stderr["size"]),
    )


def _note_line(outcome: CodeOutcome, line: Mapping[str, Any]) -> None:
    match line["type"]:
        case "stdout":
            outcome.stdout += line["text"]
        case "stderr":
            outcome.stderr += line["text"]
        case "result":
            outcome.results.append(line)
        case "error":
            outcome.error = line
        case "end_of_execution":
            outcome.end = line
        case _:
            pass  # unknown lines are ignored: the protocol grows


def _catalogue_code(body: Mapping[str, Any]) -> str | None:
    found = framing.catalogue_error(body)
    return None if found is None else str(found["code"])
