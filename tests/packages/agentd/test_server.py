"""The HTTP side of the agent: syntax, bounds, tokens, users, the sandbox's end."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.packages.agentd.plain_agent import TOKEN, Client, PlainAgent, alive, running_agent

HOOKED = Path(__file__).with_name("hooked_agent.py")


def _raw(agent: PlainAgent, data: bytes, *, pieces: int = 0) -> bytes:
    """Send bytes and return everything until the agent closes."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(agent.socket_path)
        step = pieces or len(data)
        for start in range(0, len(data), step):
            peer.sendall(data[start : start + step])
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
        return answer


def _get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def test_health_needs_no_token(agent: PlainAgent) -> None:
    """agent-protocol 2.4 and 3: 204, and "OK" for the interpreter's port."""
    with agent.client(token="") as stranger:
        assert stranger.call("GET", "/health").status == 204
        interpreter = stranger.call("GET", "/health", e2b_sandbox_port="49999")
        assert (interpreter.status, interpreter.body) == (200, b'"OK"')


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "ünïcode"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/process.Process/List"),
        ("POST", "/process.Process/Start"),
        ("POST", "/filesystem.Filesystem/Stat"),
        ("GET", "/files?path=x"),
        ("GET", "/files?path=x&signature=v1_"),
        ("POST", "/execute"),
        ("GET", "/contexts"),
        ("DELETE", "/contexts/python"),
        ("GET", "/metrics"),
        ("GET", "/envs"),
        ("GET", "/cloche/info"),
        ("POST", "/cloche/kill"),
        ("GET", "/nothing"),
    ],
)
def test_everything_else_needs_the_token(agent: PlainAgent, token: str, method: str, path: str) -> None:
    """agent-protocol 2.4: 401 before anything else is looked at."""
    with agent.client(token=token) as stranger:
        reply = stranger.call(method, path)
        assert reply.status == 401
        assert "unauthorized access" in reply.value["message"]


def test_contexts_without_token_only_where_asked(tmp_path: Path) -> None:
    """agent-protocol 3: released interpreter clients send no token there; it is an option, off by default."""
    with running_agent(tmp_path, "--open-contexts") as agent, agent.client(token="") as stranger:
        assert stranger.call("GET", "/contexts").status == 200
        assert stranger.call("POST", "/execute", b'{"code":"1"}').status == 401


def test_info_tells_what_works(client: Client) -> None:
    """GET /cloche/info: versions, users, languages."""
    info = client.call("GET", "/cloche/info").value
    assert info["protocol"] == "1"
    assert info["users"] == ["user"]
    assert info["languages"][0] == "python"


def test_metrics_have_the_published_keys(client: Client) -> None:
    """agent-protocol 2.4."""
    metrics = client.call("GET", "/metrics").value
    assert set(metrics) == {
        "ts",
        "cpu_count",
        "cpu_used_pct",
        "mem_total",
        "mem_used",
        "mem_cache",
        "disk_used",
        "disk_total",
    }
    assert 0 < metrics["mem_used"] < metrics["mem_total"]


def test_unknown_methods_and_paths_are_told_apart(client: Client) -> None:
    """Connect answers unimplemented, plain HTTP not found."""
    rpc = client.rpc("/filesystem.Filesystem/NoSuchMethod", {"path": "x"})
    assert (rpc.status, rpc.value["code"]) == (501, "unimplemented")
    plain = client.call("GET", "/nothing")
    assert (plain.status, plain.value["code"]) == (404, 404)


def test_unknown_user_is_unauthenticated(client: Client) -> None:
    """agent-protocol 2.4: by Basic on RPCs, by query on /files."""
    basic = "Basic " + base64.b64encode(b"nobody:").decode()
    reply = client.rpc("/process.Process/List", {}, authorization=basic)
    assert (reply.status, reply.value["code"]) == (401, "unauthenticated")
    assert reply.value["cloche"]["code"] == "unsupported_user"
    assert client.rpc("/process.Process/List", {}, authorization="Basic dXNlcjo=").status == 200
    assert client.rpc("/process.Process/List", {}, authorization="Bearer x").status == 401
    assert client.call("GET", "/files?path=x&username=nobody").status == 401


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/2.0\r\n\r\n", b"400"),
        (b"GET health HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nspace : x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\na: \0\r\n\r\n", b"400"),
        (b"POST /files HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"POST /files HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", b"400"),
        (b"POST /files HTTP/1.1\r\nContent-Length: +5\r\n\r\n", b"400"),
        (b"POST /files HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n", b"400"),
        (b"POST /files HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx-access-token: a\r\nx-access-token: b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\na: " + b"x" * 70000, b"431"),
    ],
)
def test_malformed_requests_are_refused(agent: PlainAgent, data: bytes, status: bytes) -> None:
    """What two readers could understand differently is refused, and the connection ends."""
    assert _raw(agent, data).split(b" ")[1] == status


def test_pipelined_requests_are_answered_in_order(agent: PlainAgent) -> None:
    """Keep-alive: three requests in one packet, three answers in order."""
    answer = _raw(
        agent, _get("/health") + _get("/health", "E2b-Sandbox-Port: 49999") + _get("/health", "Connection: close")
    )
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"204", b"200", b"204"]


def test_requests_may_arrive_byte_by_byte(agent: PlainAgent) -> None:
    """A head and a chunked body cut anywhere."""
    payload = json.dumps({"process": {"cmd": "/bin/echo", "args": ["cut"]}}).encode()
    body = struct.pack(">BI", 0, len(payload)) + payload
    chunks = b"".join(b"%x;ext=1\r\n%b\r\n" % (1, body[i : i + 1]) for i in range(len(body)))
    head = (
        "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+json\r\n"
        f"X-Access-Token: {TOKEN}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    ).encode()
    answer = _raw(agent, head + chunks + b"0\r\nTrailer: x\r\n\r\n", pieces=1)
    assert base64.b64encode(b"cut\n") in answer
    assert answer.endswith(b"0\r\n\r\n")


def test_expect_is_answered_before_the_body(agent: PlainAgent) -> None:
    """Expect: 100-continue, as curl sends it."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(agent.socket_path)
        head = f"POST /files?path=e HTTP/1.1\r\nX-Access-Token: {TOKEN}\r\n"
        head += "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        peer.sendall(head.encode())
        assert peer.recv(100).startswith(b"HTTP/1.1 100 Continue")
        peer.sendall(b"abc")
        assert peer.recv(1000).startswith(b"HTTP/1.1 200")


def test_refused_upload_can_still_read_its_answer(agent: PlainAgent) -> None:
    """A refusal is not lost because the client is still sending."""
    with agent.client(token="wrong") as stranger:
        reply = stranger.call("POST", "/files?path=x", b"x" * 3_000_000)
        assert reply.status == 401
        assert stranger.call("GET", "/health").status == 204


def test_body_over_the_limit_is_refused(client: Client) -> None:
    """Bodies that are parsed in memory are bounded."""
    assert client.call("POST", "/process.Process/List", b" " * 17_000_000).status == 413


def test_slow_heads_do_not_hold_others(agent: PlainAgent) -> None:
    """A client that sends nothing, or half a head, is nobody else's problem."""
    idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    try:
        for number, peer in enumerate(idle):
            peer.connect(agent.socket_path)
            if number % 2:
                peer.sendall(b"GET /hea")
        with agent.client() as client:
            assert client.call("GET", "/health").status == 204
    finally:
        for peer in idle:
            peer.close()


def test_many_connections_at_once(agent: PlainAgent) -> None:
    """100 clients, each with a command of its own."""
    clients = [agent.client() for _ in range(100)]
    running = [client.start(f"echo {number}") for number, client in enumerate(clients)]
    assert [one.wait().stdout for one in running] == [f"{number}\n".encode() for number in range(100)]
    for client in clients:
        client.connection.close()


def test_compressed_and_broken_envelopes_are_refused(client: Client) -> None:
    """Streams answer with an error frame; unary methods with a status."""
    for body, code in (
        (struct.pack(">BI", 1, 2) + b"{}", "unimplemented"),
        (struct.pack(">BI", 0, 50) + b"{}", "invalid_argument"),
        (struct.pack(">BI", 0, 3) + b"[1]", "invalid_argument"),
        (struct.pack(">BI", 0, 4) + b"nope", "invalid_argument"),
        (struct.pack(">BI", 0, 0xFFFFFFFF), "resource_exhausted"),
        (b"", "invalid_argument"),
    ):
        reply = client.call("POST", "/process.Process/Start", body, content_type="application/connect+json")
        assert reply.status == 200
        assert reply.body[0] == 2
        assert json.loads(reply.body[5:])["error"]["code"] == code
    assert client.call("POST", "/process.Process/List", b"[" * 100_000).status == 400


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"process": 5},
        {"process": {"cmd": ""}},
        {"process": {"cmd": "a\0b"}},
        {"process": {"cmd": "true", "args": "x"}},
        {"process": {"cmd": "true", "args": [1]}},
        {"process": {"cmd": "true", "envs": {"A=B": "x"}}},
        {"process": {"cmd": "true", "envs": {"A": "x\0"}}},
        {"process": {"cmd": "true", "cwd": "\0"}},
        {"process": {"cmd": "true", "args": ["\ud800"]}},
        {"process": {"cmd": "true"}, "stdin": "yes"},
    ],
)
def test_malformed_start_is_invalid_argument(client: Client, message: dict[str, object]) -> None:
    """Each wrong field is the client's error, never an internal one."""
    frames = list(client.frames("/process.Process/Start", message))
    assert frames[0][1]["error"]["code"] == "invalid_argument"


def test_tcp_answers_without_delay(tmp_path: Path) -> None:
    """local-runtime, Reach: TCP_NODELAY; a stream of small frames must not wait for acknowledgements."""
    (tmp_path / "token").write_text(TOKEN)
    program = Path(__file__).parents[3] / "packages/agentd/src/cloche_agentd/__main__.py"
    command = [sys.executable, "-I", "-S", str(program), "--port", "0", "--token-file", str(tmp_path / "token")]
    process = subprocess.Popen([*command, "--home", str(tmp_path)], env={}, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1])
        assert process.stdout.readline() == "ready\n"
        payload = json.dumps({"process": {"cmd": "/bin/echo", "args": ["x"]}}).encode()
        body = struct.pack(">BI", 0, len(payload)) + payload
        head = f"POST /process.Process/Start HTTP/1.1\r\nHost: localhost:{port}\r\nX-Access-Token: {TOKEN}\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), 10) as peer:
            spent: list[float] = []
            for _ in range(5):
                started = time.monotonic()
                peer.sendall(head.encode() + body)
                answer = b""
                while not answer.endswith(b"0\r\n\r\n"):
                    answer += peer.recv(65536)
                spent.append(time.monotonic() - started)
        assert min(spent) < 0.035
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


# -- the runtime's hooks -----------------------------------------------------------------------------------------


@pytest.fixture
def hooked(tmp_path: Path) -> Generator[PlainAgent]:
    """An agent booted through the public entry points, with hooks that write to hooks.log."""
    program = (sys.executable, "-I", str(HOOKED), str(tmp_path))
    with running_agent(tmp_path, program=program) as running:
        yield running


def _told(agent: PlainAgent) -> list[str]:
    log = agent.folder / "hooks.log"
    return log.read_text().splitlines() if log.exists() else []


def test_renewal_rides_on_any_request(hooked: PlainAgent) -> None:
    """local-runtime, Lifetime: a header, never a second round trip; only with the token."""
    with hooked.client() as client, hooked.client(token="no") as stranger:
        client.call("GET", "/health", cloche_renew="60")
        client.run("true", cloche_renew="61")
        stranger.call("GET", "/health", cloche_renew="62")
        assert stranger.rpc("/process.Process/List", {}, cloche_renew="63").status == 401
        for wrong in ("0", "-1", "86401", "1e3", "x"):
            assert client.rpc("/process.Process/List", {}, cloche_renew=wrong).status == 400
    assert _told(hooked) == ["renew 60", "renew 61"]


def test_kill_answers_when_everything_inside_is_dead(hooked: PlainAgent) -> None:
    """POST /cloche/kill: 204 after the last process, then the keeper ends with status 0."""
    with hooked.client() as client, hooked.client() as other:
        command = other.start("setsid sleep 300 & echo $!; trap '' TERM; sleep 300")
        command.until(b"\n")
        daemon = int(command.ran.stdout)
        code = int(client.execute("import os; print(os.getpid())").stdout)
        assert client.call("POST", "/cloche/kill").status == 204
        assert [alive(pid) for pid in (command.ran.pid, daemon, code)] == [False] * 3
    assert hooked.process.wait(10) == 0
    assert _told(hooked) == ["kill"]


def test_second_user_gets_an_init_of_its_own_once(hooked: PlainAgent) -> None:
    """local-runtime, Users: root's init is started by its first request, and signals reach its children."""
    basic = "Basic " + base64.b64encode(b"root:").decode()
    with hooked.client() as client:
        ran = client.run("echo $USER $LOGNAME $OF_SANDBOX", authorization=basic)
        assert ran.stdout == b"root root 1\n"
        assert client.run("sleep 60", authorization=basic, connect_timeout_ms="100").failure == "command_timeout"
        assert client.run("echo $USER").stdout == b"user\n"
    assert _told(hooked) == ["spawner root"]


def test_death_of_init_ends_streams_and_the_keeper(hooked: PlainAgent) -> None:
    """A sandbox whose init is gone is lost: streams end typed, the keeper ends with status 1."""
    with hooked.client() as client, hooked.client() as other:
        command = other.start("sleep 300")
        init = int(client.run("echo $PPID").stdout)
        client.run(f"kill -9 {init}", connect_timeout_ms="5000")
        assert command.wait().failure == "sandbox_lost"
        os.kill(command.ran.pid, signal.SIGKILL)
    assert hooked.process.wait(10) == 1


def test_who_waits_for_a_task_when_the_sandbox_is_lost_gets_what_it_printed(hooked: PlainAgent) -> None:
    """Issue 4, part 4: `sandbox_lost`, with the partial output; nobody can ask for it later."""
    task = {"task_id": "a" * 32, "command": "printf '%9d' $$; exec sleep 300", "timeout": 300}
    with hooked.client() as client, hooked.client() as waiting:
        init = int(client.run("echo $PPID").stdout)
        assert client.rpc("/cloche.Tasks/Start", task).status == 200
        asked = {"task_id": task["task_id"], "wait_ms": 20_000}
        printed = client.rpc("/cloche.Tasks/Get", asked).value["stdout"]
        assert printed["size"] == 9
        fields = {"x-access-token": TOKEN, "content-type": "application/json"}
        body = json.dumps({**asked, "wait_ms": 60_000, "stdout_offset": 9}).encode()
        assert waiting.call("GET", "/health").status == 204
        waiting.connection.request("POST", "/cloche.Tasks/Get", body, fields)
        # The agent has read that request before it answers this one.
        assert client.call("GET", "/health").status == 204
        os.kill(init, signal.SIGKILL)
        try:
            found = json.loads(waiting.connection.getresponse().read())
        finally:
            # Without a process namespace it outlives init.
            os.kill(int(base64.b64decode(printed["data"])), signal.SIGKILL)
    assert (found["task"]["state"], found["task"]["stop_reason"]) == ("unknown", "sandbox_lost")
    assert found["stdout"]["size"] == 9
    assert hooked.process.wait(10) == 1
