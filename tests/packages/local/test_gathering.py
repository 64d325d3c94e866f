"""What forks run lies together: they copy fewer pages, and everything is as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cloche_local.early import code_folders
from cloche_local.provider import LocalProvider
from tests.packages.local.sandboxes import made

# A zygote's memory without its sandboxes. A fork lives the life of an agent, and tells the pages that it copied.
_GATHER = """
import gc, json, os, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from cloche_agentd.agent import Agent
from cloche_agentd.practice import LIVES, practise
from cloche_local import heap, zygote
from cloche_local import syscalls as sys_
from cloche_local.gathering import Gathering
folder = sys.argv[1]

def dirty_kb():
    with open("/proc/self/smaps_rollup", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"Private_Dirty:"))

def life_of_a_fork():
    read_end, write_end = os.pipe()
    child = sys_.fork()
    if child == 0:
        practise(folder)
        os.write(write_end, b"%d" % dirty_kb())
        os._exit(0)
    os.waitpid(child, 0)
    told = int(os.read(read_end, 64))
    os.close(read_end), os.close(write_end)
    return told

def seen():
    names = ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__")
    function = Agent.__dict__["_handle"]
    return {
        "function": {name: repr(getattr(function, name)) for name in names},
        "code": [function.__code__.co_firstlineno, function.__code__.co_code.hex()],
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "shared": [line for line in open("/proc/self/maps") if "rw-s" in line],
        "profile": repr(sys.getprofile()),
    }

zygote._prepare_interpreter()
heap.share()
for _ in range(LIVES):
    practise(folder)
heap.share()
# In a list: a name of this module would be given the copy, too.
before, old, pages = seen(), [Agent.__dict__["_handle"]], life_of_a_fork()
with Gathering(zygote._RUN_BY_EACH) as gathering:
    gathering.watch(lambda: practise(folder))
    count = gathering.move()
del gathering
heap.share()
for _ in range(LIVES):
    practise(folder)
heap.share()
is_copy = Agent.__dict__["_handle"] is not old[0]
print(json.dumps({"before": before, "after": seen(), "copy": is_copy, "count": count, "kb": [pages, life_of_a_fork()]}))
"""


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("gathered")
    # Isolated and without site, as a zygote is.
    command = [sys.executable, "-I", "-S", "-c", _GATHER, str(folder), ":".join(code_folders())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_functions_that_were_moved_are_as_they_were(gathered: Any) -> None:
    """Issue 3, speed: a copy differs from what it replaces by nothing but its place."""
    assert gathered["copy"]
    assert gathered["count"] > 200
    assert gathered["before"] == gathered["after"]
    assert gathered["after"]["shared"] == []


def test_a_fork_copies_less_when_what_it_runs_lies_together(gathered: Any) -> None:
    """Issue 3, speed: private memory per sandbox."""
    spread, together = gathered["kb"]
    assert together < 0.9 * spread


def test_a_fork_without_registered_functions_copies_less() -> None:
    """Issue 3, speed: what the logging, random and threading modules do after a fork touches a hundred pages."""
    program = """
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from cloche_local import heap, zygote
from cloche_local import syscalls as sys_
zygote._prepare_interpreter()
heap.share()
for fork in (os.fork, sys_.fork):
    (read_end, write_end), (told, tell) = os.pipe(), os.pipe()
    child = fork()
    if child == 0:
        os.write(tell, b".")
        os.read(read_end, 1)
        os._exit(0)
    os.read(told, 1)
    with open(f"/proc/{child}/smaps_rollup") as file:
        print(next(line.split()[1] for line in file if line.startswith("Private_Dirty:")))
    os.write(write_end, b".")
    os.waitpid(child, 0)
"""
    command = [sys.executable, "-I", "-S", "-c", program, ":".join(code_folders())]
    by_python, by_libc = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(by_libc) < 0.75 * int(by_python)


_USES_FORKS = """
import logging, multiprocessing, os, random, threading
assert threading.main_thread() is threading.current_thread()
assert threading.main_thread().ident == threading.get_ident()
made = []
thread = threading.Thread(target=lambda: (logging.getLogger().warning("logged"), made.append("thread")))
thread.start(); thread.join()
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.write(write_end, b"%d" % (random.random() * 1e9))
    os._exit(0)
os.wait()
made.append(int(os.read(read_end, 64)) != int(random.random() * 1e9))
queue = multiprocessing.get_context("fork").SimpleQueue()
process = multiprocessing.get_context("fork").Process(target=queue.put, args=("process",))
process.start(); process.join()
made.append(queue.get())
print(made)
"""


async def test_code_in_a_context_forks_and_starts_threads_as_anywhere(provider: LocalProvider) -> None:
    """Issue 3, deliver 6: a context is a fork that calls nothing registered; what user code forks calls all of it."""
    async with made(provider) as sandbox:
        lines = await sandbox.execute(_USES_FORKS)
    assert "['thread', True, 'process']\n" in [line.get("text") for line in lines], lines
