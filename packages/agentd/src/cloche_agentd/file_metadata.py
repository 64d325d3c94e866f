"""What a client keeps with a file: `X-Metadata-NAME` headers of an upload, kept as extended attributes `user.e2b.*`."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Final

from . import limits
from .failures import AgentError, from_os_error, invalid_argument

_HEADER: Final = "x-metadata-"
_ATTRIBUTE: Final = "user.e2b."
_VALUE: Final = re.compile(r"[\x20-\x7e]*\Z")


def metadata_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata that a request gives; header names are in lower case already.

    Raises:
        AgentError: it is too much, or no text.
    """
    found = {name[len(_HEADER) :]: value for name, value in headers.items() if name.startswith(_HEADER)}
    for name, value in found.items():
        if not name or len(name) > limits.NAME_BYTES - len(_ATTRIBUTE) or not _VALUE.match(value):
            raise invalid_argument("metadata must have a name, and values of printable ASCII", "metadata")
    if sum(len(name) + len(value) for name, value in found.items()) > limits.METADATA_BYTES:
        raise invalid_argument(f"metadata of a file is at most {limits.METADATA_BYTES} bytes", "metadata")
    return found


def keep(fd: int, metadata: Mapping[str, str], path: str) -> None:
    """Keep metadata with an open file that has none yet.

    Raises:
        AgentError: the file system keeps none, or no more.
    """
    for name, value in metadata.items():
        try:
            os.setxattr(fd, _ATTRIBUTE + name, value.encode())
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                text = "the file system of this path keeps no metadata"
                raise AgentError("failed_precondition", text, "unsupported_operation") from error
            raise from_os_error(error, path) from error


def read(path: str) -> dict[str, str]:
    """Return what is kept with a file; nothing where it cannot be read."""
    try:
        names = [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith(_ATTRIBUTE)]
        kept = {
            name[len(_ATTRIBUTE) :]: os.getxattr(path, name, follow_symlinks=False)
            for name in names[: limits.HEADER_COUNT]
        }
    except OSError:
        return {}
    return {name: value.decode("utf-8", "replace") for name, value in kept.items()}
