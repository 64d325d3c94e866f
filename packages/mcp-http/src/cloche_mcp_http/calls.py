"""How many tool calls run at the same time: of one session, and of one principal.

A call of the handshake era outlives its connection, so it counts until it has really ended.

Source: the issue, item 5.
"""

from collections import Counter
from collections.abc import Hashable

from mcp_types import ErrorData, JSONRPCError, RequestId
from starlette.responses import Response

from cloche_contract.errors import Busy
from cloche_contract.kernel.failure import envelope
from cloche_mcp_http.answers import SERVER_BUSY, rpc_error

RETRY_AFTER_S = 1


class CallLimit:
    """Counts what runs, by whom, and allows so many of each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: Counter[Hashable] = Counter()

    def take(self, key: Hashable) -> bool:
        """Count one more, unless there are as many as are allowed."""
        if self._running[key] >= self._most:
            return False
        self._running[key] += 1
        return True

    def give_back(self, key: Hashable) -> None:
        """Count one less."""
        self._running[key] -= 1
        if self._running[key] <= 0:
            del self._running[key]


class Call:
    """One call that was taken up, until nothing of it runs any more."""

    def __init__(self, *counted: tuple[CallLimit, Hashable]) -> None:
        self._counted = counted
        self.answering = True
        self.running = True

    def settle(self, *, answering: bool | None = None, running: bool | None = None) -> bool:
        """Note that its answer is given, or that it has ended; tells whether both are so."""
        before = self.answering or self.running
        self.answering = self.answering if answering is None else answering
        self.running = self.running if running is None else running
        over = not self.answering and not self.running
        if before and over:
            for limit, key in self._counted:
                limit.give_back(key)
        return over


def take_up(*wanted: tuple[CallLimit, Hashable]) -> Call | None:
    """Count a call with every limit, or with none of them."""
    taken: list[tuple[CallLimit, Hashable]] = []
    for limit, key in wanted:
        if not limit.take(key):
            for other, other_key in taken:
                other.give_back(other_key)
            return None
        taken.append((limit, key))
    return Call(*taken)


def refuse_busy(request_id: RequestId | None) -> Response:
    """The answer to a call that is one too many: typed, and with the time to wait."""
    error = Busy(retry_after_s=RETRY_AFTER_S)
    data = ErrorData(code=SERVER_BUSY, message=error.text, data=envelope("sandbox", error))
    answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=data)
    return rpc_error(429, answer, {"Retry-After": str(RETRY_AFTER_S)})
