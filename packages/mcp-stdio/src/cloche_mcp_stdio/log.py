"""The log of a stdio server: facts on stderr.

Source: style S9; decision D27.
"""

import logging
import sys

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR}


def log_to_stderr(level: str) -> None:
    """Write our records from this level on, and warnings of everybody else.

    Args:
        level: a name such as `DEBUG`; anything else means `WARNING`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Facts("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(_ours_or_serious)
    logging.basicConfig(handlers=[handler], level=_LEVELS.get(level.strip().upper(), logging.WARNING))


class _Facts(logging.Formatter):
    """Appends what a record carries besides its constant message: `key=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = [f" {key}={value}" for key, value in vars(record).items() if key not in _KNOWN]
        return super().formatMessage(record) + "".join(facts)


def _ours_or_serious(record: logging.LogRecord) -> bool:
    # What libraries write for debugging holds requests and headers.
    return record.name.startswith("cloche") or record.levelno >= logging.WARNING
