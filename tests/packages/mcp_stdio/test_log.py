"""What the server writes to its log, and what it leaves out."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from cloche_mcp_stdio.log import log_to_stderr


@contextmanager
def logging_from(level: str) -> Generator[None]:
    """The log as a server process has it, without what pytest added to it."""
    root = logging.getLogger()
    before, before_level = root.handlers[:], root.level
    root.handlers.clear()
    log_to_stderr(level)
    yield
    root.handlers[:] = before
    root.setLevel(before_level)


def test_a_record_is_its_message_and_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_from("info"):
        logging.getLogger("cloche_x").info("renew failed", extra={"sandbox": "sb-1", "error": "provider_timeout"})
    assert capsys.readouterr() == ("", "INFO cloche_x: renew failed sandbox=sb-1 error=provider_timeout\n")


def test_libraries_are_heard_from_warnings_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Their debug records hold requests and headers."""
    with logging_from("DEBUG"):
        logging.getLogger("httpcore.http11").debug("authorization: sk-secret")
        logging.getLogger("httpcore.http11").warning("odd")
    assert capsys.readouterr().err == "WARNING httpcore.http11: odd\n"


@pytest.mark.parametrize("level", ["", "LOUD"])
def test_without_a_known_level_only_warnings_are_written(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_from(level):
        logging.getLogger("cloche_x").info("quiet")
        logging.getLogger("cloche_x").warning("loud")
    assert capsys.readouterr().err == "WARNING cloche_x: loud\n"
