"""Squashing with live sessions, and what is left when agent and host are killed."""

from __future__ import annotations

import base64
import json
import os
import random
import select
import shutil
import signal
from pathlib import Path

import pytest

from cloche_agentd._gen import messages, wire
from cloche_agentd.layers.store import MAX_LAYERS
from tests.packages.agentd.plain_agent import PATIENCE_S, TOKEN, running_agent
from tests.packages.agentd.workspace_desk import BASE, Desk, lay_out


def test_a_squash_tells_each_live_session_whether_it_was_moved_or_keeps_its_layers(desk: Desk) -> None:
    """Seed 003, squash_layerstacks: dispositions identity, leased, migrated; blocks between leases."""
    desk.session("bare")
    first = [desk.run(f"echo {number} > n{number}").end["exitCode"] for number in range(3)]
    assert first == [0, 0, 0]
    desk.session("idle")
    desk.session("busy")
    running = desk.client.start("echo up; read x", process=None, more={"workspaceSession": "busy", "stdin": True})
    running.until(b"up")
    with desk.agent.client() as other:
        for number in range(3, 5):
            assert other.run(f"echo {number} > n{number}").end["exitCode"] == 0
        reply = other.rpc(wire.LAYERS_SQUASH, {})
        assert reply.status == 200, reply.body
        result = reply.value
        messages.check("SquashResponse", result)
        dispositions = {each["session_id"]: each["disposition"] for each in result["swept_sessions"]}
        assert dispositions == {"bare": "identity", "idle": "migrated", "busy": "leased"}
        assert [len(block["replaced_layer_ids"]) for block in result["squashed_blocks"]] == [2, 3]
        assert [block["replaced_layers"] for block in result["squashed_blocks"]] == ["reclaimed", "leased"]
        assert result["squashed_blocks"][1]["blocked_reasons"] == ["busy: commands run in the session"]
        status = other.rpc(wire.LAYERS_STATUS, {}).value
        assert len(status["layers"]) == 2
        assert len(status["leased_layer_ids"]) == 3
        idle = other.run("ls; echo more > more", more={"workspaceSession": "idle"})
        assert idle.stdout == b"a.txt\nb\ndir\nn0\nn1\nn2\n"
        pid = running.ran.pid
        other.rpc(
            wire.PROCESS_SEND_INPUT, {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(b"\n").decode()}}
        )
        assert running.wait().end["exitCode"] == 0
        # Idle now: the next squash moves it, and the old layers go.
        again = other.rpc(wire.LAYERS_SQUASH, {}).value
        assert {each["session_id"]: each["disposition"] for each in again["swept_sessions"]}["busy"] == "migrated"
        assert other.rpc(wire.LAYERS_STATUS, {}).value["leased_layer_ids"] == []
        published = other.rpc(wire.LAYERS_PUBLISH_SESSION, {"session_id": "idle"}).value
        assert published["outcome"] == "published"
        assert other.run("ls").stdout.split() == [
            b"a.txt",
            b"b",
            b"dir",
            b"more",
            *(f"n{n}".encode() for n in range(5)),
        ]


def test_nothing_to_squash_is_a_success(desk: Desk) -> None:
    """Checklist 341: empty squashed_blocks is a success."""
    assert desk.squash() == {"manifest_version": 1, "squashed_blocks": [], "swept_sessions": []}


def test_of_two_squashes_at_the_same_time_one_is_refused(desk: Desk) -> None:
    """Checklist 341: single flight. The host is held until both have been asked for."""
    desk.run("echo 1 > one")
    desk.run("echo 2 > two")
    host = _host_of(desk.agent.process.pid)
    os.kill(host, signal.SIGSTOP)
    with desk.agent.client() as first, desk.agent.client() as second:
        try:
            for each in (first, second):
                each.connection.request("POST", wire.LAYERS_SQUASH, b"{}", {"x-access-token": TOKEN})
            (ready, *_), _, _ = select.select([first.connection.sock, second.connection.sock], [], [], PATIENCE_S)
        finally:
            os.kill(host, signal.SIGCONT)
        replies = [each.connection.getresponse() for each in (first, second)]
        refused = replies[0 if ready is first.connection.sock else 1]
        assert json.loads(refused.read())["cloche"]["code"] == "squash_in_flight"
        other = replies[1 if ready is first.connection.sock else 0]
        assert len(json.loads(other.read())["squashed_blocks"]) == 1


def _host_of(agent: int) -> int:
    """The workspace host: the child of the agent that has the store open."""
    for pid in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        names = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
        if any(name.endswith("/store/lock") for name in names):
            return int(pid)
    raise AssertionError("no workspace host")


def test_a_session_that_cannot_be_mounted_again_is_faulty_and_destroyed(desk: Desk) -> None:
    """Checklist 274: faulty_sessions say what happened; nothing of the session is left, the layers are whole."""
    desk.run("echo 1 > one")
    desk.run("echo 2 > two")
    desk.session("s")
    work = desk.folder / "store/sessions/s/work"
    (work / "work").chmod(0o700)
    shutil.rmtree(work)
    result = desk.squash()
    assert result["swept_sessions"] == [
        {"session_id": "s", "disposition": "faulty", "reason": "the layers could not be mounted again"}
    ]
    assert result["faulty_sessions"] == [{"session_id": "s", "class_detail": "the layers could not be mounted again"}]
    assert result["squashed_blocks"][0]["replaced_layers"] == "reclaimed"
    assert desk.left() == []
    assert desk.run("cat one two").stdout == b"1\n2\n"


def test_a_session_with_a_program_in_the_background_keeps_its_layers(desk: Desk) -> None:
    """Checklist 272: migrated only where nothing runs in it; what was squashed is reclaimed when it ends."""
    desk.run("echo 1 > one")
    desk.run("echo 2 > two")
    desk.session("s")
    desk.run("cd / && setsid sleep 98763 > /dev/null 2>&1 &", "s")
    result = desk.squash()
    assert result["swept_sessions"] == [
        {"session_id": "s", "disposition": "leased", "reason": "processes run in the session"}
    ]
    assert result["squashed_blocks"][0]["replaced_layers"] == "leased"
    assert len(desk.status()["leased_layer_ids"]) == 2
    assert desk.run("cat one two", "s").stdout == b"1\n2\n"
    desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "s"})
    assert desk.status()["leased_layer_ids"] == []
    assert len(os.listdir(desk.folder / "store/layers")) == 1


@pytest.mark.soak
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_state(tmp_path: Path, scale: int, seed: int) -> None:
    """Issue 7: one real-kill soak; agent and host are killed while a publish or a squash runs."""
    options = lay_out(tmp_path, BASE)
    choose = random.Random(seed)
    expected = {"a.txt", "b", "dir"}
    for turn in range(4 * scale):
        with running_agent(tmp_path, *options) as agent, agent.client() as client:
            desk = Desk(agent, client, tmp_path)
            found = set(desk.run("ls").stdout.decode().split())
            assert found >= expected - {f"n{turn - 1}"}, (turn, found)
            assert found - expected <= {f"n{turn - 1}"}
            expected = found
            assert desk.left() == []
            assert len(desk.status()["layers"]) == len(os.listdir(tmp_path / "store/layers"))
            desk.session("s")
            desk.run(
                f"mkdir d{turn}; for i in 1 2 3 4 5 6 7 8 9; do echo $i > d{turn}/$i; done; mv d{turn} n{turn}", "s"
            )
            path = choose.choice([wire.LAYERS_PUBLISH_SESSION, wire.LAYERS_SQUASH])
            body = json.dumps({"session_id": "s"} if path == wire.LAYERS_PUBLISH_SESSION else {}).encode()
            client.connection.request("POST", path, body, {"x-access-token": TOKEN})
            # The moment is the point: an answer within it is fine as well.
            select.select([client.connection.sock], [], [], choose.uniform(0, 0.03))
            host = _host_of(agent.process.pid)
            os.kill(choose.choice([host, agent.process.pid]), signal.SIGKILL)
            agent.process.kill()
            agent.process.wait()
            wait_gone(host)
        (tmp_path / "a.sock").unlink(missing_ok=True)


def wait_gone(pid: int) -> None:
    """Wait until a process that is no child of ours is gone, and so its lock."""
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([ended], [], [], PATIENCE_S)
    os.close(ended)


def test_as_many_layers_as_a_stack_may_have_can_be_mounted_and_squashed(tmp_path: Path) -> None:
    """Their names must fit into the options of one mount; overlays take 500."""
    options = lay_out(tmp_path, BASE)
    ids = [f"L{number:06d}-00000000" for number in range(MAX_LAYERS, 0, -1)]
    for layer_id in ids:
        (tmp_path / "store/layers" / layer_id).mkdir(parents=True)
        (tmp_path / "store/layers" / layer_id / layer_id).touch()
    layers = [{"layer_id": layer_id, "entries": 1, "bytes": 0} for layer_id in ids]
    manifest = {"schema_version": 1, "version": 1 + MAX_LAYERS, "layers": layers}
    (tmp_path / "store/manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "store/workspace.json").write_text('{"schema_version": 1, "base_root_hash": ""}')
    with running_agent(tmp_path, *options) as agent, agent.client() as client:
        desk = Desk(agent, client, tmp_path)
        desk.session("one")
        assert desk.run("ls | wc -l", "one").stdout.strip() == b"203"
        result = desk.squash()
        assert len(result["squashed_blocks"][0]["replaced_layer_ids"]) == MAX_LAYERS
        assert result["swept_sessions"] == [{"session_id": "one", "disposition": "migrated"}]
        assert desk.run("ls | wc -l", "one").stdout.strip() == b"203"
