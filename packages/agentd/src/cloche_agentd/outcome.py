"""How an execution of user code ended: exit code, and the error as user code's reader wants to see it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from . import limits

_USER_FILE: Final = "<execution "


@dataclass(slots=True)
class End:
    """`message` is what sys.exit("text") prints; `memory` tells that memory ran out."""

    exit_code: int = 0
    error: dict[str, str] | None = None
    message: str = ""
    memory: bool = False


def of_exception(error: BaseException) -> End:
    """Return the end that this exception of user code makes."""
    if isinstance(error, SystemExit):
        return _of_exit(error)
    exit_code = 130 if isinstance(error, KeyboardInterrupt) else 1
    try:
        told = {"name": type(error).__name__, "value": _bounded(_text(error)), "traceback": _bounded(_trace(error))}
    except (MemoryError, RecursionError):
        told = {"name": type(error).__name__, "value": "", "traceback": type(error).__name__}
    return End(exit_code, told, memory=isinstance(error, MemoryError))


def _of_exit(error: SystemExit) -> End:
    code: object = error.code
    if code is None:
        return End(0)
    if isinstance(code, int):
        return End(code & 0xFF)
    return End(1, message=_bounded(str(code)))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - user code may raise anything
        return "<the error's text failed>"


def _trace(error: BaseException) -> str:
    trace: TracebackType | None = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_USER_FILE):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= limits.TRACEBACK_CHARS:
        return text
    half = limits.TRACEBACK_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
