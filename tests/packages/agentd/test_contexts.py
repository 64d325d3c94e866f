"""Code contexts: each one its own process, made, listed, restarted, removed and interrupted."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cloche_agentd import limits
from tests.packages.agentd.plain_agent import Client, Executed, PlainAgent, Reply, alive, running_agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Generator[PlainAgent]:
    """An agent without node, so that python is its one stateful language."""
    tools = tmp_path_factory.mktemp("tools")
    (tools / "sh").symlink_to("/bin/sh")
    with running_agent(tmp_path_factory.mktemp("agent"), "--path", str(tools)) as running:
        yield running


def _create(client: Client, **fields: object) -> str:
    reply = client.call("POST", "/contexts", json.dumps(fields).encode())
    assert reply.status == 200, reply.body
    return reply.value["id"]


def _post(client: Client, identity: str, action: str) -> Reply:
    return client.call("POST", f"/contexts/{identity}/{action}")


def _listed(client: Client) -> set[str]:
    return {item["id"] for item in client.call("GET", "/contexts").value}


class Beside:
    """An execution that another connection follows; entering waits until it prints at `<runs>`."""

    def __init__(self, agent: PlainAgent, code: str, **fields: Any) -> None:
        self._client = agent.client()
        self._lines = self._client.lines(
            code.replace("<runs>", "print('runs', flush=True)\n"), **{"timeout_ms": 30_000, **fields}
        )

    def __enter__(self) -> Beside:
        while next(self._lines)["type"] != "stdout":
            pass
        return self

    def __exit__(self, *_exc: object) -> None:
        self._client.connection.close()

    def end(self) -> Executed:
        """Read it to its end."""
        return Executed(list(self._lines))


def test_context_has_its_own_variables_folder_and_process(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 3, POST /contexts: language and cwd as asked; the default one sees nothing of it."""
    (Path(agent.home) / "sub").mkdir(exist_ok=True)
    made = client.call(
        "POST", "/contexts", json.dumps({"language": "python", "cwd": f"{agent.home}/sub"}).encode()
    ).value
    assert made == {"id": made["id"], "language": "python", "cwd": f"{agent.home}/sub"}
    ran = client.execute("own = 1\nimport os\nprint(os.getcwd(), os.getpid())", context_id=made["id"])
    folder, pid = ran.stdout.split()
    assert folder == f"{agent.home}/sub"
    assert client.execute("import os; print(os.getpid(), 'own' in globals())").stdout != f"{pid} True\n"
    assert client.execute("own", context_id=made["id"]).results[0]["text"] == "1"
    assert {"python", made["id"]} <= _listed(client)
    assert client.call("DELETE", f"/contexts/{made['id']}").status == 204


def test_removed_context_is_gone_with_its_process(client: Client) -> None:
    """agent-protocol 3, DELETE: no process is left, and its id is not found, which is typed."""
    identity = _create(client)
    pid = int(client.execute("import os; print(os.getpid())", context_id=identity).stdout)
    assert client.call("DELETE", f"/contexts/{identity}").status == 204
    assert not alive(pid)
    assert identity not in _listed(client)
    for reply in (
        client.call("POST", "/execute", json.dumps({"code": "1", "context_id": identity}).encode()),
        client.call("DELETE", f"/contexts/{identity}"),
        _post(client, identity, "restart"),
        _post(client, identity, "interrupt"),
    ):
        assert (reply.status, reply.value["cloche"]["code"]) == (404, "context_not_found")


def test_restarted_context_keeps_its_id_and_loses_its_variables(client: Client) -> None:
    """agent-protocol 3, restart: asked for, so no later call is told of a loss."""
    identity = _create(client)
    client.execute("x = 1", context_id=identity)
    assert _post(client, identity, "restart").status == 204
    after = client.execute("'x' in globals()", context_id=identity)
    assert after.results[0]["text"] == "False"
    assert "context_restarted" not in after.end
    client.call("DELETE", f"/contexts/{identity}")


@pytest.mark.parametrize(("action", "name"), [("restart", "ContextRestarting"), ("remove", "ContextRemoved")])
def test_restart_and_removal_end_what_the_context_runs(
    agent: PlainAgent, client: Client, action: str, name: str
) -> None:
    """E2B's name for it: whoever follows the code hears at once why it ended."""
    identity = _create(client)
    with Beside(agent, "<runs>while True: pass", context_id=identity) as running:
        if action == "restart":
            assert _post(client, identity, "restart").status == 204
        else:
            assert client.call("DELETE", f"/contexts/{identity}").status == 204
        ran = running.end()
    assert ran.error is not None
    assert ran.error["name"] == name
    assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("cancelled", False)


def test_removal_refuses_the_calls_that_wait_for_their_turn(agent: PlainAgent, client: Client) -> None:
    """No process is started for a context that is gone."""
    identity = _create(client)
    found: list[Reply] = []

    def queue() -> None:
        with agent.client() as other:
            found.append(other.call("POST", "/execute", json.dumps({"code": "1", "context_id": identity}).encode()))

    with Beside(agent, "import time\n<runs>time.sleep(60)", context_id=identity):
        waiting = threading.Thread(target=queue)
        waiting.start()
        client.execute("1")
        client.call("DELETE", f"/contexts/{identity}")
        waiting.join(20)
    assert found
    assert found[0].status == 404


def test_default_context_comes_back_after_its_removal(fresh_agent: PlainAgent) -> None:
    """Code without a context always has one."""
    with fresh_agent.client() as client:
        client.execute("x = 1")
        assert client.call("DELETE", "/contexts/python").status == 204
        assert client.execute("'x' in globals()").results[0]["text"] == "False"
        assert "python" in _listed(client)


def test_interrupt_ends_the_running_execution_and_keeps_the_variables(agent: PlainAgent, client: Client) -> None:
    """POST /contexts/ID/interrupt: as Ctrl+C; the follower sees the interrupt as an error of the code."""
    identity = _create(client)
    assert _post(client, identity, "interrupt").value == {"interrupted": False}
    with Beside(agent, "kept = 1\n<runs>while True: pass", context_id=identity) as running:
        assert _post(client, identity, "interrupt").value == {"interrupted": True}
        ran = running.end()
    assert ran.error is not None
    assert ran.error["name"] == "KeyboardInterrupt"
    assert (ran.end["exit_code"], ran.end["stop_reason"], ran.end["state_kept"]) == (130, "cancelled", True)
    assert client.execute("kept", context_id=identity).results[0]["text"] == "1"
    client.call("DELETE", f"/contexts/{identity}")


def test_interrupt_replaces_an_interpreter_that_ignores_it(agent: PlainAgent, client: Client) -> None:
    """What cannot be interrupted is killed, and both the follower and the next call are told."""
    identity = _create(client)
    stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n<runs>while True: pass"
    with Beside(agent, stubborn, context_id=identity) as running:
        _post(client, identity, "interrupt")
        ran = running.end()
    assert ran.error is not None
    assert ran.error["name"] == "ExecutionAborted"
    assert ran.end["state_kept"] is False
    after = client.execute("1", context_id=identity)
    assert (after.lines[0]["type"], after.lines[0]["reason"]) == ("context_restarted", "cancelled")
    client.call("DELETE", f"/contexts/{identity}")


def test_number_of_contexts_is_limited_with_a_typed_error(fresh_agent: PlainAgent) -> None:
    """More than a sandbox may have: refused with the limit, also when asked at once; a removal makes room."""
    with fresh_agent.client() as client:
        made = [_create(client) for _ in range(limits.CONTEXTS)]
        reply = client.call("POST", "/contexts", b"{}")
        assert reply.status == 429
        assert reply.value["cloche"] == {"code": "context_limit", "limit": len(made)}
        client.call("DELETE", f"/contexts/{made[0]}")
        assert client.call("POST", "/contexts", b"{}").status == 200


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"language": "shell"}, "unsupported_language"),
        ({"language": "cobol"}, "unsupported_language"),
        ({"cwd": "no such folder"}, "cwd_not_found"),
        ({"cwd": 5}, "invalid_argument"),
    ],
)
def test_context_that_cannot_be_had_is_refused(client: Client, fields: dict[str, object], code: str) -> None:
    """A typed refusal, and no entry in the list."""
    before = _listed(client)
    reply = client.call("POST", "/contexts", json.dumps(fields).encode())
    assert reply.status == 400
    assert reply.value["cloche"]["code"] == code
    assert _listed(client) == before


def test_context_and_language_together_are_refused(client: Client) -> None:
    """agent-protocol 3: one or the other."""
    body = json.dumps({"code": "1", "context_id": "python", "language": "python"}).encode()
    assert client.call("POST", "/execute", body).status == 400


def test_environment_of_a_call_does_not_stay(client: Client) -> None:
    """agent-protocol 3: env_vars are for the call; what they replaced is there again."""
    identity = _create(client)
    client.execute("import os\nos.environ['MINE'] = 'kept'", context_id=identity)
    show = "print(os.environ.get('MINE'), os.environ.get('ONE'))"
    ran = client.execute(show, context_id=identity, env_vars={"MINE": "for now", "ONE": "1"})
    assert ran.stdout == "for now 1\n"
    assert client.execute(show, context_id=identity).stdout == "kept None\n"
    client.call("DELETE", f"/contexts/{identity}")


@pytest.mark.parametrize(
    "stuck",
    [
        "<runs>while True: pass",
        "import os, signal\n<runs>os.kill(os.getpid(), signal.SIGSTOP)",
        "<runs>while True: print('x' * 100000)",
        "import socket\nsocket.socket(fileno=3).detach()\n<runs>while True: pass",
    ],
    ids=["busy", "stopped", "flooding", "deaf"],
)
def test_t15_stuck_context_blocks_neither_another_nor_a_command(agent: PlainAgent, client: Client, stuck: str) -> None:
    """T15, cloudflare/sandbox-sdk#320, #438: each context is a process of its own."""
    first, second = _create(client), _create(client)
    with Beside(agent, stuck, context_id=first):
        assert client.execute("1 + 1", context_id=second).results[0]["text"] == "2"
        assert client.execute("2 + 2").results[0]["text"] == "4"
        assert client.run("echo hello").stdout == b"hello\n"
        assert client.execute("echo hello", language="shell").stdout == "hello\n"
        assert client.call("DELETE", f"/contexts/{first}").status == 204
    client.call("DELETE", f"/contexts/{second}")


@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", 128 + signal.SIGSEGV, "SIGSEGV"),
        ("import os\nos._exit(9)", 9, "exit code 9"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", 137, "memory"),
    ],
    ids=["signal", "exit", "kill"],
)
def test_death_of_an_interpreter_is_told_with_its_reason(client: Client, code: str, exit_code: int, said: str) -> None:
    """Issue 3, part 4: signal, memory or exit code; the next call has a new context that says so, once."""
    identity = _create(client)
    ran = client.execute(code, context_id=identity)
    assert ran.error is not None
    assert (ran.error["name"], said in ran.error["value"]) == ("InterpreterDied", True)
    assert (ran.end["exit_code"], ran.end["stop_reason"], ran.end["state_kept"]) == (
        exit_code,
        "interpreter_died",
        False,
    )
    after = client.execute("5", context_id=identity)
    assert (after.lines[0]["type"], after.lines[0]["exit_code"]) == ("context_restarted", exit_code)
    assert said in after.lines[0]["text"]
    assert after.results[0]["text"] == "5"
    assert "context_restarted" not in client.execute("6", context_id=identity).end
    client.call("DELETE", f"/contexts/{identity}")
