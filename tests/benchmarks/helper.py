"""A process that runs one trial for each line that it is sent, and answers with the seconds."""

from __future__ import annotations

import json
import select
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import partial
from types import TracebackType

import anyio.to_thread

from tests.benchmarks.measure import Contender

# A library of somebody else may wait for ever: that is a failed trial, and not the end of the benchmark.
TRIAL_S = 60.0
# Who gave none so often is not asked again.
MOST_SILENT = 2


class Helper:
    """Where a trial needs an interpreter of its own: another environment, or a single thread."""

    def __init__(self, command: Sequence[str], trial_s: float = TRIAL_S) -> None:
        self._command = command
        self._trial_s = trial_s
        self._silent: Counter[str] = Counter()
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Helper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Ends its input, and closes both pipes.
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def trial(self, what: str) -> float:
        """Seconds of one trial.

        Raises:
            RuntimeError: it failed, or gave no answer in time; the next trial has a new process then.
        """
        if self._silent[what] >= MOST_SILENT:
            raise RuntimeError("not tried again: it gave no answer")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], self._trial_s)[0]:
            self._silent[what] += 1
            self._kill()
            self._process = self._started()
            raise RuntimeError(f"no answer within {self._trial_s:g} s")
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the helper ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return float(answer["seconds"])

    def contender(self, name: str, what: str = "go") -> Contender:
        """A contender that this helper runs."""
        return Contender(name, partial(anyio.to_thread.run_sync, partial(self.trial, what)))
