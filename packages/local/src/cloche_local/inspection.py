"""What a live sandbox is made of, for its operator."""

from collections.abc import Sequence
from contextlib import suppress

from cloche_contract.provider import InspectResult, LimitInfo, MountInfo
from cloche_local.mounts import inodes_of
from cloche_local.state import Record


def inspect(record: Record, rules: Sequence[str] | None = None) -> InspectResult:
    """Describe the sandbox from its record and from what the kernel tells about its keeper.

    Args:
        rules: its network allowlist; None where it has no network.
    """
    return InspectResult(
        sandbox_id=record.sandbox_id,
        mounts=_mounts(record),
        limits=_limits(record),
        users=record.users,
        namespaces=list(record.namespaces),
        network="none" if rules is None else f"allowlist: {', '.join(rules) or 'empty'}",
        facts={"keeper_pid": str(record.keeper_pid), "init_pid": str(record.init_pid)},
    )


def _mounts(record: Record) -> list[MountInfo]:
    """The mount table of init, which is the sandbox's."""
    mounts: list[MountInfo] = []
    try:
        with open(f"/proc/{record.init_pid}/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return mounts
    for line in lines[:1000]:
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        bound = fields[3] != "/" and kinds[0] not in ("overlay", "proc")
        mounts.append(
            MountInfo(
                target=fields[4],
                kind="bind" if bound else kinds[0],
                source=fields[3] if bound else None,
                read_only="ro" in fields[5].split(","),
            )
        )
    return mounts


def _limits(record: Record) -> list[LimitInfo]:
    """What holds it: from its record, and per process from what the kernel tells about init, which all descend from."""
    held = _process_limits(record.init_pid)
    data, files = held.get("Max data size"), held.get("Max open files")
    grouped = record.memory_mb is not None or record.cpus is not None
    pids_by = "RLIMIT_NPROC and pids cgroup" if grouped else "RLIMIT_NPROC"
    return [
        LimitInfo(resource="pids", enforced=True, enforced_by=pids_by, value=record.pids),
        LimitInfo(resource="disk", enforced=True, enforced_by="tmpfs size", value=record.disk_mb),
        LimitInfo(
            resource="memory",
            enforced=record.memory_mb is not None,
            enforced_by=None if record.memory_mb is None else "memory cgroup",
            value=record.memory_mb,
        ),
        LimitInfo(
            resource="cpu",
            enforced=record.cpus is not None,
            enforced_by=None if record.cpus is None else "cpu cgroup",
            value=record.cpus,
        ),
        LimitInfo(
            resource="process_memory",
            enforced=data is not None,
            enforced_by=None if data is None else "RLIMIT_DATA of each process",
            value=None if data is None else data >> 20,
        ),
        LimitInfo(
            resource="open_files",
            enforced=files is not None,
            enforced_by=None if files is None else "RLIMIT_NOFILE of each process",
            value=files,
        ),
        LimitInfo(resource="inodes", enforced=True, enforced_by="tmpfs nr_inodes", value=inodes_of(record.disk_mb)),
    ]


def _process_limits(pid: int) -> dict[str, int]:
    """The hard resource limits of a process that are not infinite, by the name that the kernel shows."""
    found: dict[str, int] = {}
    with suppress(OSError), open(f"/proc/{pid}/limits", encoding="ascii", errors="replace") as file:
        for line in file.read().splitlines()[1:]:
            # Columns of fixed width: name, soft limit, hard limit, unit.
            name, hard = line[:26].strip(), line[47:68].strip()
            if hard.isdigit():
                found[name] = int(hard)
    return found
