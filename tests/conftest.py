"""What every test of the repository gets: no settings of the person who runs it, and one option for repetitions."""

from __future__ import annotations

import os
import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scale", type=int, default=1, help="multiply the repetitions of soak tests")
    parser.addoption("--seed", type=int, default=20261130, help="seed of every random choice in tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: repeats a kill, a leak or a load; --scale says how often")
    # A shell's `&` ignores Ctrl-C for what it starts, and tests press it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the scale is a soak test: one that is not marked would never be repeated."""
    for item in items:
        if isinstance(item, pytest.Function) and "scale" in item.fixturenames:
            item.add_marker("soak")


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> int:
    """How many times more often than in CI a soak test repeats."""
    return _number(request, "--scale")


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """The seed for `random.Random`: the same run twice makes the same choices."""
    return _number(request, "--seed")


def _number(request: pytest.FixtureRequest, option: str) -> int:
    value: object = request.config.getoption(option)
    assert isinstance(value, int)
    return value


@pytest.fixture(autouse=True)
def no_settings_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a provider that the developer has set must not decide how a test ends."""
    for name in [name for name in os.environ if name.startswith("ABX_")]:
        monkeypatch.delenv(name)
    # Calls of tests are not calls of that person.
    monkeypatch.setenv("ABX_AUDIT_FILE", "off")
