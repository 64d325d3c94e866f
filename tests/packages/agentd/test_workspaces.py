"""Workspace sessions: real overlays, as whoever runs the tests and, where that is root, as an ordinary user too."""

from __future__ import annotations

import base64
import os
import signal
from pathlib import Path

from cloche_agentd import limits
from cloche_agentd._gen import messages, wire
from tests.packages.agentd.plain_agent import processes_with, running_agent
from tests.packages.agentd.workspace_desk import BASE, Desk, lay_out, named, records


def test_sessions_are_private_until_they_are_published_and_then_the_next_one_sees_them(desk: Desk) -> None:
    """Issue 7: overlay per session; base and layers are read-only below it."""
    desk.session("one")
    desk.session("two")
    desk.run("echo mine > new; rm b; mkdir -p deep/er; ln -s ../../new deep/er/link", "one")
    assert desk.run("cat new; cat b", "two").stdout == b"b\n"
    result = desk.publish("one")
    assert (result["outcome"], result["entries"]) == ("published", 5)
    # It was made before: it still reads what it read.
    assert desk.run("cat new; cat b", "two").stdout == b"b\n"
    desk.session("three")
    assert desk.run("cat deep/er/link; ls", "three").stdout == b"mine\na.txt\ndeep\ndir\nnew\n"
    assert [each["session_id"] for each in desk.status()["sessions"]] == ["two", "three"]
    assert (desk.folder / "base/b").read_text() == "b\n"
    assert desk.client.rpc(wire.LAYERS_PUBLISH_SESSION, {"session_id": "one"}).status == 404


def test_a_command_without_a_session_has_one_of_its_own_that_is_published_and_destroyed(desk: Desk) -> None:
    """Issue 7: an implicit exec publishes and destroys."""
    frames = list(
        desk.client.frames(wire.PROCESS_START, {"process": {"cmd": "/bin/sh", "args": ["-c", "echo hi > n"]}})
    )
    events = [frame["event"] for flags, frame in frames if not flags]
    assert [next(iter(event)) for event in events] == ["start", "published", "end"]
    messages.check("PublishResult", events[1]["published"])
    assert events[1]["published"]["outcome"] == "published"
    assert desk.run("cat n; exit 3").end["exitCode"] == 3
    status = desk.status()
    assert (status["sessions"], len(status["layers"]), desk.left()) == ([], 1, [])
    refused = desk.client.run("true", process={"cmd": "/no/such/program"})
    assert refused.failure == "command_failed_to_start"
    assert (desk.status()["sessions"], desk.left()) == ([], [])


def test_what_two_sessions_changed_in_one_file_is_merged_by_lines_or_refused_and_kept(desk: Desk) -> None:
    """Issue 7: conflict detection by content, three-way text merge, modes kept; a refused session lives on."""
    for name in ("one", "two", "three"):
        desk.session(name)
    desk.run("sed -i s/one/ONE/ a.txt", "one")
    desk.run("sed -i s/five/FIVE/ a.txt; chmod 750 a.txt", "two")
    desk.run("sed -i s/one/1/ a.txt; echo kept > kept", "three")
    assert desk.publish("one")["outcome"] == "published"
    second = desk.publish("two")
    assert (second["outcome"], second["merged"]) == ("published", ["a.txt"])
    third = desk.publish("three")
    assert (third["outcome"], third["reject_class"]) == ("rejected", "source_conflict")
    assert third["conflicts"] == [{"path": "a.txt", "reason": "content"}]
    seen = desk.run("cat a.txt; stat -c %a a.txt").stdout
    assert seen == b"ONE\ntwo\nthree\nfour\nFIVE\n750\n"
    assert desk.run("cat kept a.txt", "three").stdout == b"kept\n1\ntwo\nthree\nfour\nfive\n"
    desk.run("git -v > /dev/null 2>&1; cp /dev/null a.txt; rm a.txt", "three")
    assert desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "three"}) == {"session_id": "three", "existed": True}
    assert desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "three"}) == {"session_id": "three", "existed": False}
    assert desk.left() == []


def test_an_export_has_the_changes_above_the_base_in_a_fixed_order(desk: Desk) -> None:
    """Checklist 277, 342, 349, 350: folded above the base; clears, deletes, content; times and modes."""
    empty = desk.export()
    assert [head["kind"] for head, _ in empty] == ["begin", "end"]
    desk.run("rm -r dir; mkdir dir; echo z > dir/.z; rm b; touch -d @1700000000.5 dir/.z; chmod 600 dir/.z")
    desk.run("mkdir e; ln -s /etc/passwd e/link; truncate -s 5M e/sparse; echo tail >> e/sparse; touch temporary")
    desk.run("rm temporary")
    desk.session("live")
    found = desk.export()
    assert named(found, "clear") == ["dir"]
    assert named(found, "delete") == ["b"]
    assert named(found, "folder") == ["dir", "e"]
    assert named(found, "file") == ["dir/.z", "e/sparse"]
    assert named(found, "symlink") == ["e/link"]
    assert found[0][0]["session_ids"] == ["live"]
    assert found[0][0]["layer_ids"] == [each["layer_id"] for each in desk.status()["layers"]]
    content = {base64.b64decode(head["path"]): (head, data) for head, data in found if head["kind"] == "file"}
    head, data = content[b"dir/.z"]
    assert (data, head["mode"], head["mtime_s"], head["mtime_ns"]) == (b"z\n", 0o600, 1_700_000_000, 500_000_000)
    assert content[b"e/sparse"][0]["size"] == 5 * 1024 * 1024 + 5
    pieces = [(head["offset"], data) for head, data in found if head["kind"] == "data"]
    assert sum(len(data) for _, data in pieces) < 100_000
    assert pieces[-1][1].endswith(b"tail\n")
    assert desk.export() == found
    assert [head["kind"] for head, _ in desk.export(names_only=True)].count("data") == 0
    desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "live"})
    desk.squash()
    assert [record for record in desk.export() if record[0]["kind"] not in ("begin", "end")] == [
        record for record in found if record[0]["kind"] not in ("begin", "end")
    ]


def test_a_session_reaches_neither_the_store_nor_the_processes_of_others_and_has_no_rights(desk: Desk) -> None:
    """Security: the store is hidden, /proc is the session's own, nothing can be mounted, marks cannot be forged."""
    desk.session("one")
    desk.session("two")
    running = desk.client.start("echo up; exec sleep 1000", more={"workspaceSession": "two"})
    running.until(b"up")
    with desk.agent.client() as other:
        store = desk.folder / "store"
        tried = other.run(
            f"ls -A {store}/layers; echo $?; ls -d /proc/[0-9]* | wc -l; grep CapEff /proc/self/status;"
            " umount . ; mount -t tmpfs none . ; mknod dev c 1 3; mknod mark c 0 0; kill -9 1; kill -9 -1; echo lives",
            more={"workspaceSession": "one"},
        )
        lines = tried.stdout.decode().splitlines()
        assert lines[0] != "0", tried
        assert int(lines[1]) <= 6
        assert lines[2].split()[1] == "0" * 16
        assert not (store / "layers/evil").exists()
        assert other.rpc(wire.LAYERS_LIST_SESSIONS, {}).value["sessions"][1]["processes"] == 1
        assert other.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "two"}).value["existed"] is True
        assert running.wait().end["exitCode"] == 137


def test_a_session_ends_with_everything_that_runs_in_it_and_publishing_says_hangup_first(desk: Desk) -> None:
    """Issue 7: publish, destroy; nothing of a session is left, however its processes hide."""
    desk.session("one")
    desk.run("setsid sh -c 'trap \"\" TERM HUP; exec sleep 98761' > /dev/null 2>&1 &", "one")
    polite = desk.client.start(
        "trap 'echo bye > bye; exit 0' HUP; echo up; sleep 98762 & wait",
        more={"workspaceSession": "one"},
    )
    polite.until(b"up")
    with desk.agent.client() as other:
        reply = other.rpc(wire.LAYERS_PUBLISH_SESSION, {"session_id": "one", "grace_ms": 20000})
        assert reply.value["outcome"] == "published", reply.body
        assert polite.wait().end["exitCode"] == 0
        assert other.run("cat bye").stdout == b"bye\n"
    assert processes_with("sleep 98761") == []
    assert desk.left() == []


def test_the_number_of_a_command_in_a_session_is_its_own_in_the_whole_sandbox(desk: Desk) -> None:
    """Each session has a pid namespace: the same pid in two of them is two commands."""
    for name in ("one", "two"):
        desk.session(name)
    first = desk.client.start("echo up; exec sleep 1000", more={"workspaceSession": "one"})
    first.until(b"up")
    with desk.agent.client() as other, desk.agent.client() as third:
        second = other.start("echo up; exec sleep 1000", more={"workspaceSession": "two"})
        second.until(b"up")
        assert first.ran.pid != second.ran.pid
        third.rpc(wire.PROCESS_SEND_SIGNAL, {"process": {"pid": second.ran.pid}, "signal": "SIGNAL_SIGKILL"})
        assert second.wait().end["exitCode"] == 137
        listed = third.rpc(wire.PROCESS_LIST, {}).value["processes"]
        assert [each["pid"] for each in listed] == [first.ran.pid]
        third.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "one"})
        assert first.wait().end["exitCode"] == 137


def test_a_new_agent_finds_the_layers_and_nothing_of_old_sessions(tmp_path: Path) -> None:
    """Issue 7: old or new state after a stop; sessions do not outlive their agent."""
    options = lay_out(tmp_path, BASE)
    with running_agent(tmp_path, *options) as agent, agent.client() as client:
        desk = Desk(agent, client, tmp_path)
        desk.run("echo kept > kept")
        desk.session("lost")
        desk.run("echo lost > lost", "lost")
        agent.process.kill()
        agent.process.wait()
    (tmp_path / "a.sock").unlink(missing_ok=True)
    with running_agent(tmp_path, *options) as agent, agent.client() as client:
        desk = Desk(agent, client, tmp_path)
        assert desk.run("ls").stdout == b"a.txt\nb\ndir\nkept\n"
        assert (desk.status()["sessions"], desk.left()) == ([], [])


def test_an_agent_without_layers_says_so_and_one_whose_store_is_damaged_changes_nothing(tmp_path: Path) -> None:
    """Checklist 275: a stale agent answers unsupported_operation; systems 5.6: a damaged store is left alone."""
    (tmp_path / "plain").mkdir()
    with running_agent(tmp_path / "plain") as agent, agent.client() as client:
        for path in (wire.LAYERS_SQUASH, wire.LAYERS_STATUS, wire.ROUTE_EXPORT_LAYERS):
            assert client.rpc(path, {}).value["cloche"]["code"] == "unsupported_operation"
        assert client.run("true", more={"workspaceSession": "x"}).failure == "unsupported_operation"
    options = lay_out(tmp_path, BASE)
    (tmp_path / "store/manifest.json").write_text("{")
    with running_agent(tmp_path, *options) as agent, agent.client() as client:
        assert client.rpc(wire.LAYERS_STATUS, {}).value["cloche"]["code"] == "layer_store_damaged"
        assert client.run("true").failure == "layer_store_damaged"
    assert (tmp_path / "store/manifest.json").read_text() == "{"


def test_w5_an_export_while_a_command_writes_has_nothing_of_it(desk: Desk) -> None:
    """Seed 003: what is exported is published, and layers never change; no state is torn."""
    desk.run("echo 1 > done")
    desk.session("s")
    writing = desk.client.start("echo up; while :; do echo more >> done; done", more={"workspaceSession": "s"})
    writing.until(b"up")
    with desk.agent.client() as other:
        found = list(records(other.call("POST", wire.ROUTE_EXPORT_LAYERS, b"{}").body))
        assert [data for head, data in found if head["kind"] == "file"] == [b"1\n"]
        assert found[0][0]["session_ids"] == ["s"]
        assert found[-1][0] == {"kind": "end", "records": len(found) - 1, "payload": 0}
        other.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "s"})
        assert writing.wait().end["exitCode"] == 137


def test_w8_a_dry_run_lists_every_change_whether_version_control_knows_it_or_not(desk: Desk) -> None:
    """container-use PR#359: names and sizes of the whole delta, without content."""
    desk.run("mkdir -p .git ignored; echo x > .git/index; echo ignored > .gitignore; echo y > ignored/y; rm b")
    found = desk.export(names_only=True)
    assert named(found, "file") == [".git/index", ".gitignore", "ignored/y"]
    assert named(found, "delete") == ["b"]
    assert b"".join(data for _, data in found) == b""


def test_a_session_that_loses_its_init_is_gone_and_so_are_its_changes(desk: Desk) -> None:
    """The kernel may end any process when memory is short: the agent notices, and nothing stays behind."""
    desk.session("s")
    running = desk.client.start("echo up; exec sleep 1000", more={"workspaceSession": "s"})
    running.until(b"up")
    (init,) = [pid for pid in inits_below(desk.agent.process.pid) if has_child(pid)]
    os.kill(init, signal.SIGKILL)
    assert running.wait().failure == "sandbox_lost"
    with desk.agent.client() as other:
        while other.rpc(wire.LAYERS_LIST_SESSIONS, {}).value["sessions"]:
            pass
        assert other.run("ls").stdout == b"a.txt\nb\ndir\n"
        # Answers in turn: what was left of the session has been removed by now.
        other.rpc(wire.LAYERS_STATUS, {})
    assert desk.left() == []


def test_there_are_only_so_many_sessions_and_one_more_is_refused(tmp_path: Path) -> None:
    """Each session has processes and a mount: the number is bounded, and the refusal says what to do."""
    options = lay_out(tmp_path, BASE)
    with running_agent(tmp_path, *options) as agent, agent.client() as client:
        desk = Desk(agent, client, tmp_path)
        for number in range(limits.WORKSPACE_SESSIONS):
            desk.session(f"s{number}")
        reply = client.rpc(wire.LAYERS_CREATE_SESSION, {})
        assert reply.value["cloche"]["code"] == "workspace_session_limit"
        assert client.run("true").failure == "workspace_session_limit"
        assert desk.session("s3")["session_id"] == "s3"
        desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": "s3"})
        assert client.run("true").end["exitCode"] == 0
        for wrong in ("", "a/b", "..", "a\n", "x" * 65):
            reply = client.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": wrong})
            assert (reply.status, reply.value["cloche"]["field"]) == (400, "session_id")


def inits_below(agent: int) -> list[int]:
    """Processes that are pid 1 of a namespace below this one's."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines = (entry / "status").read_text().splitlines()
            except OSError:
                continue
            numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
            if len(numbers) > 1 and numbers[-1] == "1" and agent in ancestors(int(entry.name)):
                found.append(int(entry.name))
    return found


def ancestors(pid: int) -> list[int]:
    """The processes above one."""
    found: list[int] = []
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def has_child(pid: int) -> bool:
    """Whether a process has started one that still runs."""
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_a_folder_in_which_a_file_was_only_opened_is_deleted_by_whoever_deleted_it(desk: Desk) -> None:
    """Layers page: what a session opened for writing and never changed is as the others have it, its folder as well."""
    desk.run("mkdir own; echo x > own/x; echo y > own/y")
    for name in ("opened", "written"):
        desk.session(name)
        assert desk.run("mkdir more; : >> own/x", name).end["exitCode"] == 0
    desk.run("echo more >> own/y", "written")
    assert desk.run("rm -r own").end["exitCode"] == 0
    assert desk.publish("opened")["outcome"] == "published"
    assert desk.run("ls").stdout.split() == [b"a.txt", b"b", b"dir", b"more"]
    refused = desk.publish("written")
    assert (refused["outcome"], refused["conflicts"]) == ("rejected", [{"path": "own", "reason": "deleted"}])
