"""Checked access to the fields of a JSON request."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Final, cast

from . import limits
from ._gen import messages
from .failures import invalid_argument

Json = Mapping[str, object]

_ENV_NAME: Final = re.compile(r"[^=\0]{1,256}\Z")


def declared(message: str, value: Json) -> Json:
    """Return a request that keeps to the message that schemas/agent declares; unknown fields are ignored.

    Raises:
        AgentError: invalid_argument names the field and the rule.
    """
    try:
        messages.check(message, value)
    except messages.FieldError as error:
        raise invalid_argument(f"{error.field} breaks the rule {error.rule}", error.field) from None
    return value


def text(value: Json, name: str, default: str | None = None) -> str:
    """Return a string field; `default` of None makes it required."""
    found = value.get(name)
    if found is None:
        if default is None:
            raise invalid_argument(f"{name} is required", name)
        return default
    if not isinstance(found, str):
        raise invalid_argument(f"{name} must be a string", name)
    try:
        found.encode()
    except UnicodeEncodeError:
        raise invalid_argument(f"{name} must be valid Unicode", name) from None
    return found


def no_nul(value: str, name: str) -> str:
    """Return `value`, refusing NUL characters, which no system call can carry."""
    if "\0" in value:
        raise invalid_argument(f"{name} must not contain NUL", name)
    return value


def whole(value: Json, name: str, default: int | None = None) -> int:
    """Return an integer field. Protobuf JSON also writes 64-bit integers as strings."""
    found = value.get(name)
    if found is None and default is not None:
        return default
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 19:
        return int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not -(2**63) <= found < 2**63:
        raise invalid_argument(f"{name} must be an integer", name)
    return found


def flag(value: Json, name: str) -> bool:
    """Return a boolean field; absent is false."""
    found = value.get(name)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise invalid_argument(f"{name} must be a boolean", name)
    return found


def inner(value: Json, name: str) -> Json:
    """Return an object field; absent is empty."""
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise invalid_argument(f"{name} must be an object", name)
    return cast("Json", found)


def texts(value: Json, name: str) -> list[str]:
    """Return a list of strings without NUL; absent is empty."""
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise invalid_argument(f"{name} must be a list", name)
    items = cast("list[object]", found)
    return [no_nul(text({name: item}, name, None), name) for item in items]


def environment(value: Json, name: str) -> dict[str, str]:
    """Return a map of environment variables; absent is empty."""
    result: dict[str, str] = {}
    for key, item in inner(value, name).items():
        if not _ENV_NAME.match(key):
            raise invalid_argument(f"{name} has a malformed variable name", name)
        result[key] = no_nul(text({name: item}, name, None), name)
        if len(result[key].encode()) + len(key.encode()) + 2 > limits.ARGUMENT_BYTES:
            raise invalid_argument(f"{name} has a value that is too long", name)
    return result


def data(value: Json, name: str) -> bytes:
    """Return a base64 field; absent is empty."""
    encoded = text(value, name, "")
    try:
        return binascii.a2b_base64(encoded.encode(), strict_mode=True)
    except binascii.Error:
        raise invalid_argument(f"{name} must be base64", name) from None
