"""A process that runs one trial for each line that it is sent, and answers with the seconds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType

import anyio.to_thread

from tests.benchmarks.measure import Contender


class Helper:
    """Where a trial needs an interpreter of its own: another environment, or a single thread."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Helper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(timeout=20)

    def trial(self, what: str) -> float:
        """Seconds of one trial.

        Raises:
            RuntimeError: it failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the helper ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return float(answer["seconds"])

    def contender(self, name: str, what: str = "go") -> Contender:
        """A contender that this helper runs."""
        return Contender(name, partial(anyio.to_thread.run_sync, partial(self.trial, what)))
