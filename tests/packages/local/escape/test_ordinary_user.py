"""The battery again as an ordinary user of the host, where root runs the tests: his sandboxes have other layers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.packages.local.ordinary import missing, run_as_user, system_python
from tests.packages.local.sandboxes import HOST_ROOT


@pytest.mark.skipif(not HOST_ROOT, reason="the tests run as an ordinary user already")
def test_the_battery_holds_for_an_ordinary_user() -> None:
    """Issue 2: as root and as an ordinary user."""
    if lacking := missing():
        pytest.skip(lacking)
    battery = str(Path(__file__).with_name("test_escapes.py"))
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        done = run_as_user([system_python() or "", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", battery], home)
    if "Permission denied" in done.stderr and done.returncode == 4:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "this machine cannot" not in done.stdout
