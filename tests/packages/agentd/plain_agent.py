"""The agent as a child process without confinement, and a small client for its wire."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

PROGRAM = Path(__file__).parents[3] / "packages/agentd/src/cloche_agentd/__main__.py"
TOKEN = "test-token"
PATIENCE_S = 20.0

Json = dict[str, Any]


class PlainAgent:
    """One running agent; `home` is the home and working directory of its user."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.home = folder / "home"
        self.socket_path = str(folder / "a.sock")

    def client(self, token: str = TOKEN) -> Client:
        """Return a client with a connection of its own."""
        return Client(self.socket_path, token)

    def close(self) -> None:
        """End the agent and wait for it."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def running_agent(
    folder: Path, *options: str, program: tuple[str, ...] = (sys.executable, "-I", "-S", str(PROGRAM))
) -> Generator[PlainAgent]:
    """Run an agent with a home below `folder` until the block is left."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "token").write_text(TOKEN)
    arguments = ["--socket", str(folder / "a.sock"), "--token-file", str(folder / "token"), "--home", str(home)]
    arguments += ["--tmp-dir", str(folder / "tmp")]
    process = subprocess.Popen(
        [*program, *arguments, *options], env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    agent = PlainAgent(process, folder)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield agent
    finally:
        agent.close()


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("agent", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass
class Reply:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Ran:
    """A command that ended."""

    pid: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    pty: bytes = b""
    end: Json = field(default_factory=dict[str, Any])
    error: Json | None = None

    @property
    def failure(self) -> str:
        """The catalogue code of the stream's error."""
        assert self.error is not None
        return self.error["cloche"]["code"]


class Client:
    """Speaks to one agent. Not for two threads."""

    def __init__(self, path: str, token: str) -> None:
        self._path = path
        self._token = token
        self.connection = UnixConnection(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> http.client.HTTPResponse:
        """Send a request; return the answer before its body is read."""
        fields = {"x-access-token": self._token}
        fields.update({name.replace("_", "-"): value for name, value in headers.items()})
        self.connection.request(method, path, body, fields)
        return self.connection.getresponse()

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        """Send a request and read its whole answer."""
        response = self.send(method, path, body, **headers)
        return Reply(response.status, dict(response.getheaders()), response.read())

    def rpc(self, path: str, message: Json, **headers: str) -> Reply:
        """Call a unary method."""
        return self.call("POST", path, json.dumps(message).encode(), content_type="application/json", **headers)

    # -- commands -----------------------------------------------------------------------------------------------

    def frames(self, path: str, message: Json, **headers: str) -> Iterator[tuple[int, Json]]:
        """Call a streaming method and yield its frames as they come."""
        payload = json.dumps(message).encode()
        body = struct.pack(">BI", 0, len(payload)) + payload
        response = self.send("POST", path, body, content_type="application/connect+json", **headers)
        assert response.status == 200, response.read()
        while head := response.read(5):
            flags, size = struct.unpack(">BI", head)
            yield flags, json.loads(response.read(size))

    def start(self, command: str, *, process: Json | None = None, more: Json | None = None, **headers: str) -> Running:
        """Start a shell command and return when it runs."""
        message = {"process": {"cmd": "/bin/sh", "args": ["-c", command], **(process or {})}, **(more or {})}
        return Running(self.frames("/process.Process/Start", message, **headers))

    def run(self, command: str, *, process: Json | None = None, more: Json | None = None, **headers: str) -> Ran:
        """Run a shell command to its end."""
        return self.start(command, process=process, more=more, **headers).wait()

    # -- code ---------------------------------------------------------------------------------------------------

    def lines(self, code: str, **fields: object) -> Iterator[Json]:
        """Run code and yield its lines as they come."""
        response = self.send("POST", "/execute", json.dumps({"code": code, **fields}).encode())
        if response.status != 200:
            raise AssertionError(response.read())
        while line := response.readline():
            yield json.loads(line)

    def execute(self, code: str, **fields: object) -> Executed:
        """Run code to its end."""
        return Executed(list(self.lines(code, **fields)))

    # -- files --------------------------------------------------------------------------------------------------

    def put(self, path: str, data: bytes, query: str = "") -> Reply:
        """Write a file."""
        target = f"/files?path={http_quote(path)}{query}"
        return self.call("POST", target, data, content_type="application/octet-stream")

    def get(self, path: str, **headers: str) -> Reply:
        """Read a file."""
        return self.call("GET", f"/files?path={http_quote(path)}", b"", **headers)


class Running:
    """A stream of a command."""

    def __init__(self, frames: Iterator[tuple[int, Json]]) -> None:
        self._frames = frames
        self.ran = Ran()
        flags, first = next(frames)
        if flags:
            self.ran.error = first["error"]
        else:
            self.ran.pid = first["event"]["start"]["pid"]

    def until(self, text: bytes) -> None:
        """Read until this text is in standard output or on the terminal."""
        while text not in self.ran.stdout and text not in self.ran.pty:
            assert self._step(), self.ran

    def wait(self) -> Ran:
        """Read to the end."""
        while self._step():
            pass
        return self.ran

    def _step(self) -> bool:
        found = next(self._frames, None)
        if found is None:
            return False
        flags, message = found
        if flags:
            self.ran.error = message.get("error")
            return True
        event = message["event"]
        data = event.get("data", {})
        self.ran.stdout += base64.b64decode(data.get("stdout", ""))
        self.ran.stderr += base64.b64decode(data.get("stderr", ""))
        self.ran.pty += base64.b64decode(data.get("pty", ""))
        self.ran.end = event.get("end", self.ran.end)
        return True


@dataclass
class Executed:
    """The lines of an execution."""

    lines: list[Json]

    def text(self, kind: str) -> str:
        """All output of a kind."""
        return "".join(line["text"] for line in self.lines if line["type"] == kind)

    @property
    def stdout(self) -> str:
        """What the code printed."""
        return self.text("stdout")

    @property
    def results(self) -> list[Json]:
        """What the code displayed."""
        return [line for line in self.lines if line["type"] == "result"]

    @property
    def error(self) -> Json | None:
        """The error that ended the code."""
        return next((line for line in self.lines if line["type"] == "error"), None)

    @property
    def end(self) -> Json:
        """The last line."""
        assert self.lines[-1]["type"] == "end_of_execution", self.lines
        return self.lines[-1]


def http_quote(path: str) -> str:
    """Return a path for a query."""
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"%{byte:02X}" for byte in path.encode())


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def processes_with(text: str) -> list[int]:
    """Pids of the processes whose command line has this text, without ourselves."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def peak_kb(pid: int) -> int:
    """The most memory that a process has had resident."""
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM"))
