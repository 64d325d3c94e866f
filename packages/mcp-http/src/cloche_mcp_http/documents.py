"""JSON documents of an authorization server: bounded in size and time, from where they were asked for only."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO, Any, cast
from urllib.parse import urlencode

_ANSWER_WITHIN_S = 5.0
_MOST_BYTES = 524_288

Fetch = Callable[[str], Mapping[str, Any]]


class FetchFailed(Exception):
    """There is no usable document at a URL; the text says why, for the log."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to somebody who may not say whose keys are right."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def fetch_document(url: str, form: Mapping[str, str] | None = None, authorization: str = "") -> Mapping[str, Any]:
    """The JSON object at a URL, or what it answers to a form; blocks.

    Raises:
        FetchFailed: there is none, or it is too large.
    """
    headers = {"Accept": "application/json", **({"Authorization": authorization} if authorization else {})}
    request = urllib.request.Request(url, None if form is None else urlencode(form).encode(), headers)
    try:
        with _OPENER.open(request, timeout=_ANSWER_WITHIN_S) as answer:
            found: Any = json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchFailed(f"status {error.code}") from None
    except (OSError, ValueError) as error:
        raise FetchFailed(type(error).__name__) from error
    if not isinstance(found, dict):
        raise FetchFailed("not an object")
    return cast("dict[str, Any]", found)
