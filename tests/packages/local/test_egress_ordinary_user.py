"""The network allowlist again as an ordinary user of the host, where root runs the tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.packages.local.ordinary import missing, run_as_user, system_python
from tests.packages.local.sandboxes import HOST_ROOT


@pytest.mark.skipif(not HOST_ROOT, reason="the tests run as an ordinary user already")
def test_the_allowlist_holds_for_an_ordinary_user() -> None:
    """Issue 3: as root and as an ordinary user, whose egress process has a user namespace instead of another id."""
    if lacking := missing():
        pytest.skip(lacking)
    tests = str(Path(__file__).with_name("test_egress.py"))
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        command = [system_python() or "", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not pip", tests]
        done = run_as_user(command, home)
    if "Permission denied" in done.stderr and done.returncode == 4:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "this machine cannot" not in done.stdout
