"""What runs trials of other people's code."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks.helper import Helper

_PEER = """
import json, sys, time
for line in sys.stdin:
    if line.strip() == "hang":
        time.sleep(1000)
    print(json.dumps({"seconds": 0.5}), flush=True)
"""


def test_a_peer_that_never_answers_is_a_failed_trial_and_not_the_end() -> None:
    """A library was seen to wait for ever; the benchmark then never ended, and nobody was told why."""
    with Helper([sys.executable, "-c", _PEER], trial_s=20) as helper:
        assert helper.trial("go") == 0.5
        helper._trial_s = 0.2  # pyright: ignore[reportPrivateUsage] - the first trial pays for the start
        for told in (r"no answer within 0\.2 s", r"no answer within 0\.2 s", "not tried again"):
            with pytest.raises(RuntimeError, match=told):
                helper.trial("hang")
        helper._trial_s = 20  # pyright: ignore[reportPrivateUsage]
        assert helper.trial("go") == 0.5
