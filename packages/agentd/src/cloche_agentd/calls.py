"""What is told of a request to whoever keeps a record: method, status, duration, and nothing of what it carries."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from .exchange import Exchange
from .httpwire import Head

Record = Callable[[str, Mapping[str, object]], None]

# Asked all the time by clients that look whether the sandbox lives.
_UNTOLD = "/health"


class CallRecord:
    """Tells each request once, when it is answered or its client is gone."""

    def __init__(self, record: Record, methods: frozenset[str]) -> None:
        """Tell by `record`.

        Args:
            methods: paths that are told as they are; any other may hold what a client chose.
        """
        self._record = record
        self._methods = methods

    def done(self, exchange: Exchange) -> None:
        """An exchange is over."""
        head = exchange.head
        if head.path == _UNTOLD:
            return
        facts: dict[str, object] = {"method": self._name(head)}
        if exchange.status:
            facts["status"] = exchange.status
        if not exchange.finished:
            facts["client_gone"] = True
        facts["ms"] = round((time.monotonic() - exchange.began) * 1000, 1)
        self._record("call", facts)

    def _name(self, head: Head) -> str:
        if head.path in self._methods:
            return f"{head.method} {head.path}" if head.method in ("GET", "POST") else head.path
        first = "/" + head.path.lstrip("/").partition("/")[0]
        return first if first in self._methods else "unknown"
