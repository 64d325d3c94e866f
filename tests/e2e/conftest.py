"""A server process for real clients."""

from pathlib import Path

import pytest

from tests.e2e.servers import local_is_refused, settings_for
from tests.packages.mcp_stdio.raw_client import clean_environ


@pytest.fixture
def provider() -> str:
    """Real isolation where this machine can; a test may ask for each provider by a parameter of this name."""
    return "local" if local_is_refused() is None else "scripted"


@pytest.fixture
def environ(provider: str, tmp_path: Path) -> dict[str, str]:
    """What the client gives to the server."""
    home = tmp_path / "home"
    home.mkdir()
    return clean_environ(HOME=str(home), **settings_for(provider, tmp_path))
