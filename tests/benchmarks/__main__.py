"""`nox -s bench`: run every group, print the table, keep the numbers."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from tests.benchmarks.cloud import data_plane_group, platform_group
from tests.benchmarks.docker_groups import (
    docker_call_group,
    docker_create_group,
    docker_disk_group,
    docker_large_group,
    docker_memory_group,
    docker_small_group,
)
from tests.benchmarks.engine import some_engine
from tests.benchmarks.long_work import parts_group, task_group
from tests.benchmarks.many import ALIVE, at_once_group, file_group, memory_group
from tests.benchmarks.measure import Group, run_rounds
from tests.benchmarks.over_http import http_group
from tests.benchmarks.page import write_page
from tests.benchmarks.picture import draw
from tests.benchmarks.report import document, table
from tests.benchmarks.single import call_group, create_group, one_shot_group, start_group, warm_group


@dataclass(frozen=True)
class Plan:
    """A group, and the rounds of a whole run and of the smoke test; 0 leaves it out of that."""

    key: str
    open: Callable[[], AbstractAsyncContextManager[Group]]
    rounds: int
    smoke_rounds: int
    warm_up: int = 1


PLANS = (
    Plan("create", create_group, 40, 3),
    Plan("warm", warm_group, 100, 3, 3),
    Plan("call", call_group, 300, 10),
    Plan("start", start_group, 15, 1),
    Plan("one-shot", one_shot_group, 15, 1),
    # Before many are made at once: what makes the sandboxes is the same process when groups follow each other.
    Plan("memory", memory_group, ALIVE, 0, 0),
    Plan("50", partial(at_once_group, 50), 5, 0),
    Plan("100", partial(at_once_group, 100), 5, 0),
    Plan("file", file_group, 15, 1),
    Plan("task", task_group, 100, 3),
    Plan("parts", parts_group, 15, 1),
    Plan("http", http_group, 40, 1, 0),
    Plan("cloud", platform_group, 200, 3),
    Plan("cloud-file", data_plane_group, 10, 1),
    Plan("docker-create", docker_create_group, 15, 0),
    Plan("docker-call", docker_call_group, 100, 3, 1),
    Plan("docker-disk", docker_disk_group, 1, 0, 0),
    Plan("docker-large", docker_large_group, 7, 0),
    Plan("docker-small", docker_small_group, 7, 0),
    Plan("docker-memory", docker_memory_group, 3, 0, 0),
)


async def run(chosen: Sequence[str], *, smoke: bool) -> list[Group]:
    """Measure every group, one after the other; within a group the contenders take turns."""
    measured: list[Group] = []
    for plan in PLANS:
        rounds = plan.smoke_rounds if smoke else plan.rounds
        if rounds == 0 or (chosen and plan.key not in chosen):
            continue
        async with plan.open() as group:
            await run_rounds(group, rounds, plan.warm_up)
            measured.append(group)
    return measured


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a few rounds only: it works, not how fast")
    parser.add_argument("--only", action="append", default=[], choices=[plan.key for plan in PLANS], help="this group")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every trial to FILE")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw the medians as a PNG")
    parser.add_argument("--docs", action="store_true", help="put table and picture into docs/explanation/speed.md")
    options = parser.parse_args(arguments)
    # Where the shell forbids it, our programs would compile themselves at each start; what pip installs never does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Whoever gives up waiting leaves no engine and no sandbox behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # An engine of our own takes longer to start than the smoke test may take.
    with nullcontext() if options.smoke else some_engine():
        groups = anyio.run(lambda: run(options.only, smoke=options.smoke))
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    head = f"As {who}, Python {sys.version.split()[0]}, {os.cpu_count()} processors, Linux {os.uname().release}."
    report = f"{head}\n\n{table(groups)}\n"
    sys.stdout.write(report)
    if options.json is not None:
        options.json.write_text(json.dumps(document(groups), indent=1) + "\n")
    if options.picture is not None:
        draw(groups, options.picture)
    if options.docs:
        write_page(groups, report, some=bool(options.only))
    failed = sum(len(contender.failures) for group in groups for contender in group.contenders)
    if failed:
        sys.stdout.write(f"{failed} trials failed.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
