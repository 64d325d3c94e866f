"""The floor for a sandbox: fork a warm Python, enter the same namespaces, make the same mounts, run the code.

No agent, no record, no filter, no limits, no HTTP. A process of its own, since a fork wants a single thread. For each
line on standard input it runs one trial and answers with the seconds from the fork to the output.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from cloche_local import mounts, templates, users
from cloche_local import syscalls as sys_
from cloche_local.spec import Protections, RootPlan

PROCESSES = 512
DISK_MB = 1024
CODE = compile("print(6 * 7)", "<code>", "exec")
NAMESPACES = (
    sys_.CLONE_NEWNS
    | sys_.CLONE_NEWUTS
    | sys_.CLONE_NEWCGROUP
    | sys_.CLONE_NEWPID
    | sys_.CLONE_NEWNET
    | sys_.CLONE_NEWIPC
)


class Floor:
    """What every trial uses again, as the zygote does."""

    def __init__(self, folder: Path) -> None:
        self.host_root = os.geteuid() == 0
        self.ids = os.getuid(), os.getgid()
        self.staging = folder / "staging"
        self.staging.mkdir()
        self.slots = str(folder / "slots")
        template = templates.find_template(templates.BASE)
        assert template is not None
        self.plan: RootPlan = templates.plan_root(template, str(folder), host_root=self.host_root)
        folder.chmod(0o755)

    def trial(self) -> float:
        """Seconds from the fork to the code's output."""
        id_range = users.open_range(self.slots, PROCESSES) if self.host_root else None
        read_end, write_end = os.pipe()
        started = time.perf_counter()
        child = os.fork()
        if child == 0:
            self._outer(write_end, id_range)
        os.close(write_end)
        with open(read_end, "rb") as reader:
            output = reader.readline()
            seconds = time.perf_counter() - started
        _, status = os.waitpid(child, 0)
        if id_range is not None:
            id_range.close()
        if status != 0 or output != b"42\n":
            raise RuntimeError(f"a bare trial ended with {status} and {output!r}")
        return seconds

    def _outer(self, write_end: int, id_range: users.IdRange | None) -> NoReturn:
        """Enter the namespaces; the next fork is process 1."""
        try:
            sys_.unshare(NAMESPACES | (0 if self.host_root else sys_.CLONE_NEWUSER))
            if not self.host_root:
                users.write_single_map(*self.ids)
            inner = os.fork()
            if inner == 0:
                self._inner(write_end, id_range)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
        finally:
            os._exit(70)

    def _inner(self, write_end: int, id_range: users.IdRange | None) -> NoReturn:
        """Make the root and run the code in it."""
        try:
            mounts.make_private()
            staging = mounts.Staging(
                str(self.staging),
                DISK_MB,
                host_root=self.host_root,
                range_base=0 if id_range is None else id_range.base,
                userns_fd=-1 if id_range is None else id_range.userns_fd,
            )
            root = mounts.build_root(self.plan, staging, Protections())
            mounts.mount_proc(root, own=True, sealed=True)
            mounts.seal_proc_sys(root)
            mounts.switch_root(root)
            if id_range is not None:
                users.enter_range(id_range.userns_fd, users.USER_ID)
            os.dup2(write_end, 1)
            exec(CODE, {})
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(70)


def main() -> None:
    sys_.load()
    with tempfile.TemporaryDirectory(prefix="cloche-floor-") as name:
        floor = Floor(Path(name))
        for _line in iter(sys.stdin.readline, ""):
            try:
                answer: dict[str, object] = {"seconds": floor.trial()}
            except (OSError, RuntimeError) as error:
                answer = {"error": str(error)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
