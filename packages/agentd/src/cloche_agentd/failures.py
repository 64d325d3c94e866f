"""The agent's own error: a Connect code, a catalogue code of Cloche, and static text."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Final

HTTP_STATUS: Final[Mapping[str, int]] = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


class AgentError(Exception):
    """A request that the agent refuses or could not do.

    `code` is a Connect code, `cloche` a code of the error catalogue, `status` the HTTP status of a plain endpoint.
    """

    def __init__(self, code: str, message: str, cloche: str, *, status: int | None = None, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.cloche = cloche
        self.status = status if status is not None else HTTP_STATUS[code]
        self.details = details

    def connect_value(self) -> dict[str, object]:
        """Return the error object of a Connect answer.

        Our code stands beside Connect's fields and not in its `details`: those are packed Protobuf messages, which
        Connect clients decode.
        """
        return {"code": self.code, "message": self.message, "cloche": {"code": self.cloche, **self.details}}

    def connect_body(self) -> bytes:
        """Return the body of a unary Connect error."""
        return json.dumps(self.connect_value()).encode()

    def plain_body(self) -> bytes:
        """Return the body of an error on a plain HTTP endpoint."""
        cloche: dict[str, object] = {"code": self.cloche, **self.details}
        return json.dumps({"code": self.status, "message": self.message, "cloche": cloche}).encode()


def invalid_argument(message: str, field: str) -> AgentError:
    """Return the refusal of a malformed request field."""
    return AgentError("invalid_argument", message, "invalid_argument", field=field)


_BY_ERRNO: Final[Mapping[int, tuple[str, str, str]]] = {
    errno.ENOENT: ("not_found", "path does not exist", "file_not_found"),
    errno.EACCES: ("permission_denied", "permission denied", "file_permission_denied"),
    errno.EPERM: ("permission_denied", "permission denied", "file_permission_denied"),
    errno.EROFS: ("permission_denied", "the file system is read-only", "file_permission_denied"),
    errno.EISDIR: ("invalid_argument", "path is a directory", "file_is_directory"),
    errno.ENOTDIR: ("invalid_argument", "path is not a directory", "file_not_directory"),
    errno.ELOOP: ("failed_precondition", "too many symbolic links", "path_invalid"),
    errno.ENAMETOOLONG: ("invalid_argument", "path is too long", "path_invalid"),
    errno.EINVAL: ("invalid_argument", "path is not valid", "path_invalid"),
    errno.ENXIO: ("invalid_argument", "not a regular file", "file_special"),
    errno.ENOTEMPTY: ("failed_precondition", "directory is not empty", "file_exists"),
    errno.EEXIST: ("already_exists", "path already exists", "file_exists"),
}
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def from_os_error(error: OSError, path: str) -> AgentError:
    """Translate an operating system error of a file operation on `path`."""
    number = error.errno or 0
    if number in _NO_SPACE:
        return AgentError("resource_exhausted", "not enough disk space", "disk_full", status=507)
    if number == errno.EFBIG:
        return AgentError("resource_exhausted", f"file is too large: {path}", "file_too_large", status=413)
    code, text, cloche = _BY_ERRNO.get(number, ("internal", "the file operation failed", "internal_error"))
    return AgentError(code, f"{text}: {path}", cloche)
