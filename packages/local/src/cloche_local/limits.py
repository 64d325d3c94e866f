"""Control groups of sandboxes: which limits this host can hold, and holding them. Source: cgroups(7).

Everything goes through a folder that is handed in, so that a recorded tree can stand for a machine. Version 1 has
a hierarchy per controller; version 2 has one, whose controllers a root host turns on for its children.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass

from cloche_local.spec import OWN_PROCESSES, Limits

PREFIX = "cloche-"
# A group is empty between its making and the first process in it.
FRESH_S = 2.0
_PERIOD_US = 100_000


_PIDS = 512
_DISK_MB = 1024
_OPEN_FILES = 16384


def default_limits() -> Limits:
    """What a sandbox gets on this host unless its request says otherwise.

    Its disk is memory: at most a quarter of the host's. One process has at most half of it, so that a slip
    (`bytearray(10**11)`) is an error and not the end of the host. All processes together have a quarter of the open
    files that the host has.
    """
    try:
        memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        with open("/proc/sys/fs/file-max", encoding="ascii") as file:
            share = int(file.read()) // 4 // _PIDS
    except (AttributeError, OSError, ValueError):
        # Another system: opening the provider says nothing about it, making a sandbox does.
        return Limits(pids=_PIDS, disk_mb=_DISK_MB)
    return Limits(
        pids=_PIDS,
        disk_mb=max(min(_DISK_MB, memory_mb // 4), 64),
        open_files=max(min(_OPEN_FILES, share), 1024),
        process_mb=max(memory_mb // 2, 1024),
    )


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The writable control groups of a host: controller name to the folder that sandboxes' groups go in."""

    version: int
    folders: dict[str, str]

    def holds(self, controller: str) -> bool:
        """Whether a limit of this controller can be enforced."""
        return controller in self.folders


def find_hierarchy(root: str, membership: str = "/proc/self/cgroup") -> Hierarchy:
    """Look below `root` (normally /sys/fs/cgroup) for controllers whose groups we may make.

    Args:
        membership: the file that tells which groups we are in ourselves.
    """
    if os.path.exists(f"{root}/cgroup.controllers"):
        folder = root if os.access(root, os.W_OK) else _delegated_folder(root, membership)
        if folder is None:
            return Hierarchy(2, {})
        enabled = _words(f"{folder}/cgroup.subtree_control")
        return Hierarchy(2, {name: folder for name in ("pids", "memory", "cpu") if name in enabled})
    folders: dict[str, str] = {}
    for name in ("pids", "memory", "cpu"):
        for candidate in (f"{root}/{name}", f"{root}/cpu,cpuacct" if name == "cpu" else ""):
            if candidate and os.path.isfile(f"{candidate}/cgroup.procs") and os.access(candidate, os.W_OK):
                folders[name] = candidate
                break
    return Hierarchy(1, folders)


def _delegated_folder(root: str, membership: str) -> str | None:
    """The version 2 group that ours is in, where an ordinary user may make groups and move processes in it."""
    with suppress(OSError), open(membership, encoding="utf-8", errors="surrogateescape") as file:
        for line in file.read().splitlines():
            if line.startswith("0::/"):
                parent = root + os.path.dirname(line[3:]).rstrip("/")
                if all(os.access(path, os.W_OK) for path in (parent, f"{parent}/cgroup.procs")):
                    return parent
    return None


def _words(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


class Group:
    """The control groups of one sandbox. Made by the keeper, removed by the zygote or by a sweep."""

    def __init__(self, hierarchy: Hierarchy, sandbox_id: str) -> None:
        self._hierarchy = hierarchy
        self._name = PREFIX + sandbox_id
        self._members: list[int] = []

    def make(self, *, pids: int | None, memory_mb: int | None, cpus: int | None) -> None:
        """Make the groups and write their limits.

        Raises:
            OSError: the kernel refused; the limit does not hold.
        """
        wanted = {
            "pids": None if pids is None else pids + OWN_PROCESSES,
            "memory": memory_mb,
            "cpu": cpus,
        }
        for controller, value in wanted.items():
            if value is None or controller not in self._hierarchy.folders:
                continue
            folder = self._folder(controller)
            with suppress(FileExistsError):
                os.mkdir(folder)
            for file, text in self._settings(controller, value):
                _write(f"{folder}/{file}", text)
        # Opened now: who opens it from a control group namespace of its own may move processes inside that one only.
        self._members = [os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for path in self.folders()]

    def _settings(self, controller: str, value: int) -> list[tuple[str, str]]:
        two = self._hierarchy.version == 2
        if controller == "pids":
            return [("pids.max", str(value))]
        if controller == "memory":
            bytes_ = str(value << 20)
            return [("memory.max", bytes_), ("memory.swap.max", "0")] if two else [("memory.limit_in_bytes", bytes_)]
        if two:
            return [("cpu.max", f"{value * _PERIOD_US} {_PERIOD_US}")]
        return [("cpu.cfs_period_us", str(_PERIOD_US)), ("cpu.cfs_quota_us", str(value * _PERIOD_US))]

    def _folder(self, controller: str) -> str:
        return f"{self._hierarchy.folders[controller]}/{self._name}"

    def folders(self) -> list[str]:
        """The group folders that exist."""
        paths = {self._folder(controller) for controller in self._hierarchy.folders}
        return sorted(path for path in paths if os.path.isdir(path))

    def attach(self, pid: int) -> None:
        """Put a process into every group; its children follow. Once only, after `make`."""
        while self._members:
            fd = self._members.pop()
            try:
                os.write(fd, str(pid).encode())
            finally:
                os.close(fd)

    def open_memory_events(self) -> int:
        """A descriptor whose text tells how often the memory limit killed; -1 where no limit holds."""
        if "memory" not in self._hierarchy.folders:
            return -1
        name = "memory.events" if self._hierarchy.version == 2 else "memory.oom_control"
        with suppress(OSError):
            return os.open(f"{self._folder('memory')}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        return -1

    def remove(self) -> bool:
        """Remove the groups; False where a process is still in one."""
        gone = True
        for folder in self.folders():
            try:
                os.rmdir(folder)
            except OSError:
                gone = False
        return gone


def count_memory_kills(events_fd: int) -> int:
    """Read `oom_kill` from an open events file; 0 without one."""
    if events_fd < 0:
        return 0
    for line in os.pread(events_fd, 4096, 0).decode().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0


def left_groups(hierarchy: Hierarchy) -> set[str]:
    """Ids of sandboxes that have a group, for the sweep; without those that another server may be making just now."""
    names: set[str] = set()
    made_before = time.time() - FRESH_S
    for folder in hierarchy.folders.values():
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX) and entry.stat().st_mtime <= made_before:
                    names.add(entry.name.removeprefix(PREFIX))
    return names


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
