"""Directories that may become a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloche_contract.errors import ConfigurationInvalid, WorkspaceNotAllowed
from cloche_docker_manager.picker import list_directories
from cloche_docker_manager.settings import ManagerSettings, read_settings


@pytest.fixture
def settings(tmp_path: Path) -> ManagerSettings:
    for name in ("roots/one/Beta", "roots/one/alpha/deep", "roots/two", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "roots/one/file").touch()
    (tmp_path / "roots/one/escape").symlink_to(tmp_path / "outside")
    (tmp_path / "roots/one/inside").symlink_to(tmp_path / "roots/one/alpha")
    roots = f"{tmp_path}/roots/one:{tmp_path}/roots/two:{tmp_path}/missing"
    return read_settings({"HOME": str(tmp_path), "ABX_DOCKER_WORKSPACE_ROOTS": roots})


def test_directories_are_listed_one_level_at_a_time_below_the_roots(settings: ManagerSettings, tmp_path: Path) -> None:
    """Checklist 230, 231, 235 to 237, 337: roots, then what is directly inside, sorted whatever the case, once each."""
    roots = list_directories(None, settings)
    assert (roots.path, roots.parent, roots.truncated) == (None, None, False)
    assert [one.name for one in roots.directories] == ["one", "two"]
    inside = list_directories(roots.directories[0].path, settings)
    assert (inside.path, inside.parent) == (f"{tmp_path}/roots/one", None)
    assert sorted(one.path for one in inside.directories) == [
        f"{tmp_path}/roots/one/Beta",
        f"{tmp_path}/roots/one/alpha",
    ]
    assert [one.name.casefold() for one in inside.directories] == sorted(
        one.name.casefold() for one in inside.directories
    )
    deeper = list_directories(f"{tmp_path}/roots/one/alpha", settings)
    assert (deeper.parent, [one.name for one in deeper.directories]) == (f"{tmp_path}/roots/one", ["deep"])


@pytest.mark.parametrize("path", ["outside", "roots", "roots/one/escape", "roots/one/../.."])
def test_what_is_not_below_a_root_is_not_listed(settings: ManagerSettings, tmp_path: Path, path: str) -> None:
    """Checklist 232, 337."""
    with pytest.raises(WorkspaceNotAllowed):
        list_directories(str(tmp_path / path), settings)


def test_more_than_500_directories_are_truncated(settings: ManagerSettings, tmp_path: Path) -> None:
    """Checklist 233, 234."""
    for number in range(500):
        (tmp_path / f"roots/two/{number:03}").mkdir()
    assert list_directories(f"{tmp_path}/roots/two", settings).truncated is False
    (tmp_path / "roots/two/one-more").mkdir()
    found = list_directories(f"{tmp_path}/roots/two", settings)
    assert (len(found.directories), found.truncated) == (500, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ABX_DOCKER_PROFILE", "huge"),
        ("ABX_DOCKER_STATE_DIR", "relative"),
        ("ABX_DOCKER_CACHE_DIR", "relative"),
        ("ABX_DOCKER_WORKSPACE_ROOTS", "/ok:relative"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationInvalid) as told:
        read_settings({"HOME": "/root", name: value})
    assert told.value.details == {"setting": name}
