"""From the text of one JSON-RPC message to the message, or to the error that answers it.

Source: checklist 297; JSON-RPC 2.0 section 5.1; MCP 2025-06-18 (no batches).
"""

import json
from collections.abc import Mapping
from typing import cast

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError


def parse_message(line: bytes) -> JSONRPCMessage | None:
    """Return the message, the error that answers the text, or `None` for what needs no answer."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _second_look(line)
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
        # An id of a wrong type would make a request a notification: silence instead of an answer.
        return refusal(None, INVALID_REQUEST, "Invalid request: id must be a string or an integer")
    # We send no requests, so nobody waits for a response.
    return message if isinstance(message, JSONRPCRequest | JSONRPCNotification) else None


def _second_look(line: bytes) -> JSONRPCMessage | None:
    """Say what is wrong with a line, or let it pass: a lone surrogate is JSON to all but the strict parser."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        return refusal(None, PARSE_ERROR, "Parse error")
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _explain_invalid(value)
    return message if isinstance(message, JSONRPCRequest) else None


def _explain_invalid(value: object) -> JSONRPCError | None:
    if isinstance(value, list):
        return refusal(None, INVALID_REQUEST, "Invalid request: batches are not supported")
    if not isinstance(value, dict):
        return refusal(None, INVALID_REQUEST, "Invalid request: a message is an object")
    message = cast("Mapping[str, object]", value)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    request_id = message.get("id")
    if not isinstance(request_id, str | int) or isinstance(request_id, bool):
        request_id = None
    if message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str):
        return refusal(request_id, INVALID_PARAMS, "Invalid params: params must be an object")
    return refusal(request_id, INVALID_REQUEST, "Invalid request")


def refusal(request_id: RequestId | None, code: int, message: str) -> JSONRPCError:
    """The error that answers a message. Its text is static: nothing of the message is in it."""
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
