"""What happened in a sandbox: one bounded file of JSON lines beside the state folders, which outlives the sandbox.

Its keeper writes it; whoever finds the keeper dead adds the end. A line has no payload, no path, no value and no
secret. Standard library only: keeper, zygote and host half share it.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

FOLDER = ".logs"
_SUFFIX = ".jsonl"
MOST_BYTES = 256 << 10
_LINE_BYTES = 2048
ENDED = "ended"


def path_of(state_path: str, sandbox_id: str) -> str:
    """The log of one sandbox. The id must be one (`state.is_sandbox_id`)."""
    return f"{state_path}/{FOLDER}/{sandbox_id}{_SUFFIX}"


def id_of(name: str) -> str:
    """The sandbox that a file in the folder of logs is about."""
    return name.removesuffix(_SUFFIX)


def create(sandbox_id: str, state_fd: int) -> "Journal":
    """Make the log of a new sandbox. One that cannot be made keeps no sandbox from starting."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return Journal(os.open(f"{FOLDER}/{sandbox_id}{_SUFFIX}", flags, 0o600, dir_fd=state_fd))
    except OSError:
        return Journal(-1)


class Journal:
    """The log of a live sandbox, in its keeper. A disk that is full loses lines, and they are counted."""

    def __init__(self, fd: int, *, most_bytes: int = MOST_BYTES) -> None:
        self._fd = fd
        self._most_bytes = most_bytes
        self._bytes = 0
        self._number = 0
        self._lost = 0

    def write(self, event: str, facts: Mapping[str, object] | None = None) -> None:
        """Add one event. Never fails: no call may break because its line cannot be written."""
        self._number += 1
        more = {"lost": self._lost} if self._lost else {}
        line = _line(self._number, event, {**(facts or {}), **more})
        try:
            if self._bytes + len(line) > self._most_bytes:
                self._drop_older_half()
            self._bytes += os.write(self._fd, line)
            self._lost = 0
        except OSError:
            self._lost += 1

    def _drop_older_half(self) -> None:
        """Keep the newer half: a sandbox that is busy for days must not fill the disk."""
        data = os.pread(self._fd, self._most_bytes, 0)
        _cut, _newline, kept = data[-self._most_bytes // 2 :].partition(b"\n")
        os.ftruncate(self._fd, 0)
        # Appended: the file is open for nothing else.
        self._bytes = os.write(self._fd, kept)


def _line(number: int, event: str, facts: Mapping[str, object]) -> bytes:
    fixed = {"seq": number, "time": round(time.time(), 3), "event": event}
    line = json.dumps({**fixed, **facts}, separators=(",", ":")).encode() + b"\n"
    # A name of a denied destination comes from user code; a line is one write, which no other line can split.
    return line if len(line) <= _LINE_BYTES else json.dumps(fixed).encode() + b"\n"


def read(path: str) -> list[Mapping[str, Any]] | None:
    """Every event that can be read, oldest first; None where there is no log. Half a line is left out."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(fd, "rb") as file:
        data = file.read(2 * MOST_BYTES)
    events: list[Mapping[str, Any]] = []
    for line in data.splitlines():
        with suppress(ValueError):
            event = cast("object", json.loads(line))
            if isinstance(event, dict) and {"seq", "time", "event"} <= event.keys():
                events.append(cast("Mapping[str, Any]", event))
    return events


def has_ended(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the log tells its sandbox's end."""
    return any(event["event"] == ENDED for event in events[-3:])


def add_end(path: str, reason: str, facts: Mapping[str, object] | None = None) -> None:
    """Note how a sandbox ended whose keeper could not; nothing happens where the log tells it, or is not there."""
    events = read(path)
    if events is None or has_ended(events):
        return
    number = int(events[-1]["seq"]) + 1 if events else 1
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(fd, _line(number, ENDED, {"reason": reason, **(facts or {})}))
        finally:
            os.close(fd)
