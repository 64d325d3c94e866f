"""What an agent of a platform means by an error: it has no codes of our catalogue, only those of its protocol.

Its text is looked at where a code says too little, and never taken over.

Source: agent-protocol 2.1 to 2.4, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cloche_contract.errors import (
    AuthenticationFailed,
    ClocheError,
    CommandFailedToStart,
    CommandTimeout,
    ContextNotFound,
    CwdNotFound,
    DiskFull,
    FileExists,
    FileIsDirectory,
    FileNotDirectory,
    FileNotFound,
    FilePermissionDenied,
    FileTooLarge,
    InvalidArgument,
    ProcessNotFound,
    ProviderFailed,
    ProviderUnavailable,
    UnsupportedLanguage,
)

__all__ = ["plain_error"]

# An HTTP status says as much as a code of Connect does.
_CODES: Mapping[int, str] = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    409: "already_exists",
    413: "too_large",
    416: "out_of_range",
    502: "unavailable",
    503: "unavailable",
    504: "deadline_exceeded",
    507: "resource_exhausted",
}

_ANYWHERE: Mapping[str, Callable[[], ClocheError]] = {
    "deadline_exceeded": CommandTimeout,
    "unauthenticated": AuthenticationFailed,
    "unavailable": ProviderUnavailable,
    "too_large": FileTooLarge,
}
_OF_FILES: Mapping[str, Callable[[], ClocheError]] = {
    "not_found": FileNotFound,
    "already_exists": FileExists,
    "permission_denied": FilePermissionDenied,
    "resource_exhausted": DiskFull,
    "out_of_range": lambda: InvalidArgument(field="offset", rule="maximum"),
}
_OF_PROCESSES: Mapping[str, Callable[[], ClocheError]] = {"not_found": ProcessNotFound}
_OF_CODE: Mapping[str, Callable[[], ClocheError]] = {"not_found": ContextNotFound}
_SERVICES: Mapping[str, Mapping[str, Callable[[], ClocheError]]] = {
    "/filesystem.Filesystem/": _OF_FILES,
    "/files": _OF_FILES,
    "/process.Process/": _OF_PROCESSES,
    "/execute": _OF_CODE,
    "/contexts": _OF_CODE,
}


def plain_error(path: str, body: Mapping[str, Any], http_status: int | None) -> ClocheError:
    """The catalogue error for what an agent answered at a path."""
    code = body.get("code")
    if not isinstance(code, str):
        code = _CODES.get(http_status or 0, "")
    text = str(body.get("message", "")).lower()
    found = _ANYWHERE.get(code)
    for prefix, meanings in _SERVICES.items():
        if path.startswith(prefix):
            found = found or meanings.get(code) or _told(prefix, code, text)
    return ProviderFailed(http_status=http_status) if found is None else found()


def _told(prefix: str, code: str, text: str) -> Callable[[], ClocheError] | None:
    """What an argument that is not valid means: only the text tells."""
    if code != "invalid_argument":
        return None
    if prefix == "/execute":
        return partial(UnsupportedLanguage, available=[]) if "language" in text or "kernel" in text else None
    if prefix == "/process.Process/":
        return CwdNotFound if "cwd" in text else CommandFailedToStart if "start" in text else None
    if "not a directory" in text:
        return FileNotDirectory
    return FileIsDirectory if "is a directory" in text else None
