"""Contenders that are programs: a bare Python, bubblewrap, a container."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread

from tests.benchmarks.measure import Contender

ABX = Path(sys.executable).parent / "abx"
CODE = "print(6 * 7)"
ANSWER = "42"


@contextmanager
def plain_python() -> Generator[str]:
    """The interpreter that a sandbox uses too, in an empty virtual environment: as a user has it, and no more.

    Our own environment and the host's site-packages may hold files that run at each start of Python.
    """
    with tempfile.TemporaryDirectory(prefix="cloche-plain-") as folder:
        interpreter = os.path.realpath(sys.executable)
        subprocess.run([interpreter, "-I", "-m", "venv", "--without-pip", folder], check=True, timeout=60)
        yield f"{folder}/bin/python3"


def bare_python() -> tuple[str, ...]:
    """The same interpreter without `site`: the least that starting Python can take."""
    return os.path.realpath(sys.executable), "-I", "-S"


def run_program(command: Sequence[str]) -> float:
    """Seconds from the start of a program to its end; its output must be the answer."""
    started = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0 or done.stdout.strip() != ANSWER:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-120:]}")
    return seconds


def run_many(command: Sequence[str], count: int) -> float:
    """Seconds from the start of the first of many equal programs to the end of the last."""
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    seconds = time.perf_counter() - started
    right = sum(output.strip() == ANSWER for output in outputs)
    if right != count:
        raise RuntimeError(f"{right} of {count} gave the answer")
    return seconds


def program(name: str, *command: str) -> Contender:
    """A contender that starts a program for each trial."""

    async def trial() -> float:
        return await anyio.to_thread.run_sync(partial(run_program, command))

    return Contender(name, trial)


def bubblewrap(name: str) -> Contender | None:
    """bubblewrap with namespaces and a root comparable to ours, and the same interpreter; None where it is missing."""
    if not shutil.which("bwrap"):
        return None
    interpreter = os.path.realpath(sys.executable)
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
    for folder in ("bin", "lib", "lib64", "sbin"):
        path = Path("/", folder)
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    if not interpreter.startswith("/usr/"):
        command += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home", "--chdir", "/home"]
    # Without site, as an interpreter of ours starts too.
    return program(name, *command, interpreter, "-I", "-S", "-c", CODE)


def docker_image() -> str | None:
    """An image with Python that the engine has already, or None where no engine answers."""
    if not shutil.which("docker"):
        return None
    wanted = os.environ.get("BENCHMARK_IMAGE", "python")
    try:
        asked = subprocess.run(["docker", "image", "inspect", wanted], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return None
    return wanted if asked.returncode == 0 else None


@contextmanager
def container(image: str) -> Generator[str]:
    """A container that waits, for `docker exec`."""
    command = ["docker", "run", "--detach", "--rm", "--network", "none", image, "python3", "-c", "input()"]
    command[3:3] = ["--interactive"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    name = done.stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, timeout=60, check=False)
