"""What is no message is answered by the transport; what is one reaches the server.

Source: checklist 297; JSON-RPC 2.0 section 5.1.
"""

import json

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from cloche_mcp_stdio.lines import Oversized
from cloche_mcp_stdio.transport import encode_frame, parse_line


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b"hello", -32700, None),
        (b'{"a":' * 100_000, -32700, None),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff"}', -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"[]", -32600, None),
        (b"3", -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"id":"q","method":"ping"}', -32600, "q"),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":[1]}', -32602, 2),
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":"x"}', -32602, 2),
    ],
)
def test_a_line_that_is_no_message_is_answered_with_its_code(
    line: bytes, code: int, request_id: int | str | None
) -> None:
    answer = parse_line(line)
    assert isinstance(answer, JSONRPCError)
    assert (answer.error.code, answer.id) == (code, request_id)


def test_an_oversized_line_is_an_invalid_request() -> None:
    answer = parse_line(Oversized(5))
    assert isinstance(answer, JSONRPCError)
    assert (answer.error.code, answer.id) == (-32600, 5)
    assert "8 MiB" in answer.error.message


def test_requests_and_notifications_pass() -> None:
    assert isinstance(parse_line(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(parse_line(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}\r'), JSONRPCRequest)
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"id"}}'
    assert isinstance(parse_line(line), JSONRPCNotification)
    nested = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}'
    assert isinstance(parse_line(nested), JSONRPCNotification)


def test_half_a_character_in_an_argument_reaches_the_validation() -> None:
    r"""Models cut emoji in half; an error without id would leave their client waiting."""
    line = rb'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"command":"\ud83d"}}}'
    message = parse_line(line)
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"arguments": {"command": "\ud83d"}}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":"x"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}',
    ],
)
def test_a_response_to_nothing_is_not_answered(line: bytes) -> None:
    """We send no requests; an error for a response could go back and forth for ever."""
    assert parse_line(line) is None


def test_a_frame_is_one_line_for_every_line_reader() -> None:
    """Some clients' line readers also break at U+2028, U+2029 and U+0085."""
    text = "a\nb\r\u2028\u2029\u0085é"
    frame = encode_frame(JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": text}))
    assert frame.decode().splitlines(keepends=True) == [frame.decode()]
    assert json.loads(frame)["result"]["text"] == text


def test_a_result_that_is_no_json_becomes_an_internal_error() -> None:
    frame = encode_frame(JSONRPCResponse(jsonrpc="2.0", id=4, result={"name": "\udcff"}))
    answer = json.loads(frame)
    assert answer == {"jsonrpc": "2.0", "id": 4, "error": {"code": -32603, "message": "Internal error"}}
