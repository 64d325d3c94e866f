"""The conformance suite against the local provider: real isolation on this machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cloche_local.provider import open_provider
from cloche_testkit.conformance import ProviderConformance
from cloche_testkit.conformance.base import OpenProvider


class TestLocal(ProviderConformance):
    """Everything, in a state directory of its own."""

    @pytest.fixture
    def open_provider(self) -> OpenProvider:
        return open_provider

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Mapping[str, str]:
        return {"local_state_dir": str(tmp_path / "state"), "local_runtime_dir": str(tmp_path / "run")}
