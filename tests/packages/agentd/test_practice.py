"""What an agent's process does before it is forked: nothing of it is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_PRACTISE = """
import json, os, resource, signal, sys, threading
import cloche_agentd
cloche_agentd.preload()
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
practise(sys.argv[1])
print(json.dumps([before, state()]))
"""


def test_practice_leaves_nothing_behind(tmp_path: Path) -> None:
    """Issue 3, speed: what is forked from it later is as it would be without."""
    command = [sys.executable, "-c", _PRACTISE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    before, after = json.loads(done.stdout)
    assert before == after
    assert before["children"] == ""
