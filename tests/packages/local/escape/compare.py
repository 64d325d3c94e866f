"""The battery side by side: in a sandbox of ours, in bubblewrap and in plain `docker run`, where those are there.

`python -m tests.packages.local.escape.compare` prints a table; `nox -s bench` ends with it. Each attempt is one script
that any Python runs. OPEN: it worked. HELD: it did not. ABSENT: this kernel lets nobody do it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.benchmarks.engine import some_engine
from tests.benchmarks.programs import docker_image
from tests.packages.local.escape.battery import ATTEMPTS, attack, workshop
from tests.packages.local.escape.host_facts import host_facts
from tests.packages.local.ordinary import system_python

_TIMEOUT_S = 30
_OUTCOMES = ("HELD", "OPEN", "ABSENT")
Runner = Callable[[str], Awaitable[str]]


def bubblewrap(python: str) -> list[str]:
    """A root and namespaces comparable to ours: /usr, a /proc, a /dev, temporary files, and no network."""
    command = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--ro-bind",
        "/usr",
        "/usr",
    ]
    for name in ("bin", "lib", "lib64", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    return [*command, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home", python, "-c"]


async def _run(command: Sequence[str], code: str) -> str:
    """What an attempt prints as a program of this command."""
    with anyio.move_on_after(_TIMEOUT_S):
        done = await anyio.run_process([*command, code], check=False, stderr=subprocess.DEVNULL)
        return _outcome(done.stdout.decode("utf-8", "replace"))
    return "late"


def _outcome(text: str) -> str:
    # An attempt that could not even be made (no such file, no such module) has not worked.
    word = text.strip()
    return word if word in _OUTCOMES else "HELD"


def _others() -> Mapping[str, Runner]:
    """The ways to run an attempt that this machine has, beside ours."""
    found: dict[str, Runner] = {}
    python = system_python()
    if shutil.which("bwrap") is not None and python is not None:
        found["bubblewrap"] = partial(_run, bubblewrap(python))
    image = docker_image()
    if image is not None:
        found["docker run"] = partial(_run, ["docker", "run", "--rm", image, "python3", "-c"])
    return found


async def compare(folder: Path, facts: dict[str, str]) -> list[list[str]]:
    """Rows of the table: the attempt, then its outcome for each way to run it."""
    others = _others()
    rows = [["attempt", "cloche", *others]]
    async with workshop(folder) as shop:
        sandbox = await shop.without()
        for attempt in ATTEMPTS:
            code = attempt.program(facts)
            row = [attempt.name, _outcome(await attack(sandbox, code))]
            row += [await run(code) for run in others.values()]
            rows.append(row)
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows in columns, and how many attempts each way has held."""
    counts = [Counter(column[1:]) for column in zip(*rows, strict=True)][1:]
    held = [f"{count['HELD'] + count['ABSENT']} of {sum(count.values())} held" for count in counts]
    lines = [*rows, ["", *held]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def main() -> int:
    """Print the table; fails where an attempt works in a sandbox of ours."""
    with (
        some_engine(),
        tempfile.TemporaryDirectory(prefix="cl-") as path,
        pytest.MonkeyPatch.context() as patch,
        host_facts(Path(path), patch) as facts,
    ):
        rows = anyio.run(compare, Path(path, "sandboxes"), facts)
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    print(f"Attempts to get out, as {who} of the host:\n\n{table(rows)}", flush=True)
    return int(any(row[1] == "OPEN" for row in rows[1:]))


if __name__ == "__main__":
    sys.exit(main())
