"""`nox -s bench`: run every group, print the table, keep the numbers."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from tests.benchmarks.contenders import call_group, create_group, one_shot_group, start_group
from tests.benchmarks.measure import Group, run_rounds
from tests.benchmarks.picture import draw
from tests.benchmarks.report import document, table

# Rounds of a whole run and of the smoke test.
GROUPS = ((create_group, 60, 3), (call_group, 300, 10), (start_group, 15, 1), (one_shot_group, 15, 1))


async def run(*, smoke: bool) -> list[Group]:
    """Measure every group, one after the other; within a group the contenders take turns."""
    measured: list[Group] = []
    for open_group, rounds, smoke_rounds in GROUPS:
        async with open_group() as group:
            await run_rounds(group, smoke_rounds if smoke else rounds)
            measured.append(group)
    return measured


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a few rounds only: it works, not how fast")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every trial to FILE")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw the medians as a PNG")
    options = parser.parse_args(arguments)
    groups = anyio.run(lambda: run(smoke=options.smoke))
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    sys.stdout.write(f"As {who}, Python {sys.version.split()[0]}, {os.cpu_count()} processors.\n\n{table(groups)}\n")
    if options.json is not None:
        options.json.write_text(json.dumps(document(groups), indent=1) + "\n")
    if options.picture is not None:
        draw(groups, options.picture)
    failed = sum(len(contender.failures) for group in groups for contender in group.contenders)
    if failed:
        sys.stdout.write(f"{failed} trials failed.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
