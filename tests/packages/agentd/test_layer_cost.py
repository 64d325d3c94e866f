"""What a squash and an export cost per file, in system calls, against `cp -a` of the same tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages.agentd.layer_stores import Bench

_PACKAGE = Path(__file__).parents[3] / "packages/agentd/src"
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from cloche_agentd.layers import export
from cloche_agentd.layers.door import Door
from cloche_agentd.layers.squash import squash
from cloche_agentd.layers.store import Store
store = Store.open(sys.argv[2], sys.argv[3], "", Door())
if sys.argv[4] == "squash":
    assert squash(store)
else:
    with store.view(store.manifest, base=False) as layers, store.open_layers((), base=True) as base:
        for record in export.fold(layers.fds, base, (1, (), ()), names_only=False):
            export.frame(record)
"""


def _calls(tmp_path: Path, command: list[str]) -> int:
    """How many system calls a program makes."""
    told = tmp_path / "calls"
    subprocess.run(["strace", "-f", "-c", "-o", str(told), *command], check=True, capture_output=True)
    total = next(line.split() for line in told.read_text().splitlines() if line.endswith(" total"))
    return int(total[3] if len(total) > 4 else total[2])


def _stack(folder: Path, files: int) -> Bench:
    bench = Bench(folder)
    store = bench.open()
    for layer in range(2):
        bench.publish(store, f"s{layer}", {f"d{n % 4}/{layer}-{n}": b"x" * 200 for n in range(files // 2)})
    store.close()
    return bench


def test_a_squash_and_an_export_make_fewer_calls_per_file_than_a_copy(tmp_path: Path) -> None:
    """docker.md: pure Python is slow where it makes many calls per file; what a start costs is subtracted."""
    if shutil.which("strace") is None:
        pytest.skip("no strace on this machine")
    found: dict[str, list[int]] = {"squash": [], "export": [], "copy": []}
    for files in (100, 300):
        bench = _stack(tmp_path / str(files), files)
        ours = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_PACKAGE), str(bench.path), str(bench.base)]
        found["copy"].append(_calls(tmp_path, ["cp", "-a", f"{bench.path}/layers", f"{tmp_path}/copy{files}"]))
        found["export"].append(_calls(tmp_path, [*ours, "export"]))
        found["squash"].append(_calls(tmp_path, [*ours, "squash"]))
    per_file = {name: (more - less) / 200 for name, (less, more) in found.items()}
    assert per_file["squash"] <= 3, per_file
    assert per_file["export"] <= 6, per_file
    assert per_file["copy"] >= per_file["export"], per_file
