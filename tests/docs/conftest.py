"""The site, built once for all tests of it."""

from pathlib import Path

import pytest

from tests.docs.site import build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this tree, built with every warning an error: a lost link, a page that no list names."""
    return build(tmp_path_factory.mktemp("site"), PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C.UTF-8")
