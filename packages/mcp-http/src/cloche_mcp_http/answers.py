"""HTTP answers that the server gives by itself, before or instead of a tool set.

Their text is static: nothing that a client sent is in it.
"""

from collections.abc import Mapping

from mcp_types import JSONRPCError, RequestId
from starlette.responses import JSONResponse, Response

from cloche_contract.serving import refusal

# JSON-RPC leaves -32000 to -32099 to servers; these two are what deployed clients know.
SERVER_BUSY = -32000
UNAUTHORIZED = -32001


def refuse(
    status: int,
    code: int,
    message: str,
    *,
    request_id: RequestId | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A JSON-RPC error with an HTTP status."""
    return rpc_error(status, refusal(request_id, code, message), headers)


def rpc_error(status: int, error: JSONRPCError, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON-RPC error that is there already, with an HTTP status."""
    body = error.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return JSONResponse(body, status_code=status, headers=None if headers is None else dict(headers))


def plain(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error that belongs to HTTP alone."""
    return JSONResponse({"error": message}, status_code=status, headers=None if headers is None else dict(headers))
