"""Watchers: WatchDir, and CreateWatcher with GetWatcherEvents and RemoveWatcher."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.packages.agentd.plain_agent import Client, Json, PlainAgent

SERVICE = "/filesystem.Filesystem"


def _watch(client: Client, path: Path, **fields: object) -> str:
    reply = client.rpc(f"{SERVICE}/CreateWatcher", {"path": str(path), **fields})
    assert reply.status == 200, reply.value
    return reply.value["watcherId"]


def _drain(client: Client, watcher: str) -> Json:
    reply = client.rpc(f"{SERVICE}/GetWatcherEvents", {"watcherId": watcher})
    assert reply.status == 200, reply.value
    return reply.value


def _told(client: Client, watcher: str) -> list[tuple[str, str]]:
    """Type and name of what was told since the last time."""
    events = _drain(client, watcher)["events"]
    return [(event["type"].removeprefix("EVENT_TYPE_"), event["name"]) for event in events]


def test_upload_is_told_as_e2b_tells_it(client: Client, tmp_path: Path) -> None:
    """agent-protocol 2.3: CREATE, CHMOD, WRITE for a new file; CHMOD, WRITE, WRITE over one. No temporary name."""
    watcher = _watch(client, tmp_path)
    client.put(f"{tmp_path}/a.txt", b"one")
    assert _told(client, watcher) == [("CREATE", "a.txt"), ("CHMOD", "a.txt"), ("WRITE", "a.txt")]
    client.put(f"{tmp_path}/a.txt", b"two")
    assert _told(client, watcher) == [("CHMOD", "a.txt"), ("WRITE", "a.txt"), ("WRITE", "a.txt")]


def test_each_change_has_its_type(client: Client, tmp_path: Path) -> None:
    """A rename tells the old name as RENAME and the new one as CREATE."""
    watcher = _watch(client, tmp_path)
    file = tmp_path / "f"
    file.write_text("1")
    file.chmod(0o600)
    file.rename(tmp_path / "g")
    (tmp_path / "g").unlink()
    assert _told(client, watcher) == [
        ("CREATE", "f"),
        ("WRITE", "f"),
        ("CHMOD", "f"),
        ("RENAME", "f"),
        ("CREATE", "g"),
        ("REMOVE", "g"),
    ]
    assert _told(client, watcher) == []


def test_l27_new_sub_folders_are_watched_and_nothing_in_them_is_missed(client: Client, tmp_path: Path) -> None:
    """L27, microsandbox#537: files that are made faster than their folder can be watched are told, once each."""
    watcher = _watch(client, tmp_path, recursive=True)
    for number in range(200):
        folder = tmp_path / f"d{number}" / "e"
        folder.mkdir(parents=True)
        (folder / "f").write_text("x")
    made = [name for kind, name in _told(client, watcher) if kind == "CREATE"]
    expected = {f"d{number}{rest}" for number in range(200) for rest in ("", "/e", "/e/f")}
    assert set(made) == expected
    assert len(made) == len(expected)
    (tmp_path / "d7/e/f").write_text("later")
    assert ("WRITE", "d7/e/f") in _told(client, watcher)


def test_l27_git_add_while_watching_is_told_whole(client: Client, tmp_path: Path) -> None:
    """L27: `git add` makes objects/xx and renames a file into it at once."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for number in range(60):
        (tmp_path / f"{number}.txt").write_text(str(number))
    watcher = _watch(client, tmp_path / ".git/objects", recursive=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    made = {name for kind, name in _told(client, watcher) if kind == "CREATE"}
    objects = tmp_path / ".git/objects"
    assert {str(file.relative_to(objects)) for file in objects.glob("??/*")} <= made


def test_l27_overflow_is_told_and_what_comes_later_is_watched(fresh_agent: PlainAgent, tmp_path: Path) -> None:
    """L27, fswatch#330: the kernel drops events beyond its queue; the watcher says so and looks again."""
    folder = tmp_path / "w"
    folder.mkdir()
    with fresh_agent.client() as client:
        watcher = _watch(client, folder, recursive=True)
        limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        os.kill(fresh_agent.process.pid, signal.SIGSTOP)
        for number in range(limit // 3 + 500):
            file = folder / str(number)
            file.write_text("x")
            file.unlink()
        (folder / "new").mkdir()
        os.kill(fresh_agent.process.pid, signal.SIGCONT)
        assert _drain(client, watcher)["overflow"] is True
        _drain(client, watcher)
        (folder / "new/file").write_text("x")
        assert ("CREATE", "new/file") in _told(client, watcher)


def test_folder_moved_away_and_back_keeps_its_names_right(client: Client, tmp_path: Path) -> None:
    """Changes below a moved folder carry the new name, and none when it left."""
    watched, outside = tmp_path / "w", tmp_path / "o"
    (watched / "a/b").mkdir(parents=True)
    outside.mkdir()
    watcher = _watch(client, watched, recursive=True)
    (watched / "a").rename(watched / "c")
    assert _told(client, watcher) == [("RENAME", "a"), ("CREATE", "c"), ("CREATE", "c/b")]
    (watched / "c/b/f").touch()
    assert _told(client, watcher)[0] == ("CREATE", "c/b/f")
    (watched / "c").rename(outside / "c")
    _told(client, watcher)
    (outside / "c/b/g").touch()
    assert _told(client, watcher) == []


def test_link_to_a_folder_is_not_followed(client: Client, tmp_path: Path) -> None:
    """A recursive watch stays below its folder."""
    watched, outside = tmp_path / "w", tmp_path / "o"
    watched.mkdir()
    outside.mkdir()
    (watched / "link").symlink_to(outside)
    watcher = _watch(client, watched, recursive=True)
    (outside / "f").touch()
    assert _told(client, watcher) == []


def test_entry_is_included_while_it_is_there(client: Client, tmp_path: Path) -> None:
    """includeEntry (envd 0.6.3): the entry of what still exists."""
    watcher = _watch(client, tmp_path, includeEntry=True)
    (tmp_path / "f").write_text("1")
    events = _drain(client, watcher)["events"]
    assert events[0]["entry"]["path"] == f"{tmp_path}/f"
    (tmp_path / "f").unlink()
    assert "entry" not in _drain(client, watcher)["events"][0]


def _stream(client: Client, path: Path, **fields: object) -> Iterator[Json]:
    frames = client.frames(f"{SERVICE}/WatchDir", {"path": str(path), **fields}, keepalive_ping_interval="1")
    return (message for _flags, message in frames)


def test_stream_starts_tells_changes_and_keeps_alive(agent: PlainAgent, tmp_path: Path) -> None:
    """agent-protocol 2.3: start first, changes as they happen, keepalive in silence."""
    with agent.client() as client:
        messages = _stream(client, tmp_path, recursive=True)
        assert next(messages) == {"start": {}}
        (tmp_path / "d").mkdir()
        assert next(messages) == {"filesystem": {"name": "d", "type": "EVENT_TYPE_CREATE"}}
        assert next(messages) == {"keepalive": {}}


def test_stream_of_what_cannot_be_watched_is_an_error(agent: PlainAgent, client: Client, tmp_path: Path) -> None:
    """The errors that the SDKs branch on: not_found, and invalid_argument for a file."""
    file = tmp_path / "f"
    file.touch()
    for path, code in ((tmp_path / "none", "not_found"), (file, "invalid_argument")):
        with agent.client() as other:
            assert next(_stream(other, path))["error"]["code"] == code
        assert client.rpc(f"{SERVICE}/CreateWatcher", {"path": str(path)}).value["code"] == code


def test_watchers_are_bounded_and_given_back(fresh_agent: PlainAgent, tmp_path: Path) -> None:
    """A removed watcher and a stream that went away free their place; an unknown one is not_found."""
    with fresh_agent.client() as client:
        for _ in range(40):
            with fresh_agent.client() as other:
                assert next(_stream(other, tmp_path)) == {"start": {}}
            watcher = _watch(client, tmp_path)
            assert client.rpc(f"{SERVICE}/RemoveWatcher", {"watcherId": watcher}).status == 200
        assert client.rpc(f"{SERVICE}/GetWatcherEvents", {"watcherId": "gone"}).value["code"] == "not_found"
        replies = [client.rpc(f"{SERVICE}/CreateWatcher", {"path": str(tmp_path)}) for _ in range(33)]
        assert replies[-1].value["code"] == "resource_exhausted"
        descriptors = Path(f"/proc/{fresh_agent.process.pid}/fd")
        assert sum("inotify" in os.readlink(entry) for entry in descriptors.iterdir()) <= 32
