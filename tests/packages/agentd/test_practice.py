"""What an agent's process does before it is forked: nothing of it is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_PRACTISE = """
import json, os, resource, signal, sys, threading
import cloche_agentd
cloche_agentd.preload()
from cloche_agentd import practice
from cloche_agentd.practice import practise

def state():
    return {
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
        "threads": threading.active_count(),
        "mask": os.umask(0o27),
        "limit": resource.getrlimit(resource.RLIMIT_NOFILE),
        "interrupt": repr(signal.getsignal(signal.SIGINT)),
        "modules": sorted(sys.modules),
        "folder": os.listdir(sys.argv[1]),
    }

state(), practise(sys.argv[1])
before = state()
practice._LONGEST_S = float(sys.argv[2])
try:
    practise(sys.argv[1])
except TimeoutError:
    print("too long", file=sys.stderr)
print(json.dumps([before, state()]))
"""


@pytest.mark.parametrize(("longest_s", "told"), [("2", ""), ("0.0001", "too long\n")], ids=["whole", "cut short"])
def test_practice_leaves_nothing_behind(tmp_path: Path, longest_s: str, told: str) -> None:
    """Issue 3, speed: what is forked from it later is as it would be without; it never keeps its process for long."""
    command = [sys.executable, "-c", _PRACTISE, str(tmp_path), longest_s]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, told)
    before, after = json.loads(done.stdout)
    assert before == after
    assert before["children"] == ""
