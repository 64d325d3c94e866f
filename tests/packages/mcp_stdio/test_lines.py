"""Bytes to lines, and what becomes of a line that is too long."""

import json

import pytest

from cloche_mcp_stdio.lines import MAX_LINE_BYTES, LineSplitter, Oversized


def all_lines(splitter: LineSplitter, *parts: bytes) -> list[bytes | Oversized]:
    return [line for part in parts for line in splitter.feed(part)]


def test_a_line_that_arrives_in_parts_is_handed_out_once() -> None:
    assert all_lines(LineSplitter(), b'{"a"', b":1}", b'\n{"b":2}\n{"c"') == [b'{"a":1}', b'{"b":2}']


def test_the_last_line_needs_no_newline() -> None:
    splitter = LineSplitter()
    assert all_lines(splitter, b"one\ntwo") == [b"one"]
    assert list(splitter.finish()) == [b"two"]
    assert list(splitter.finish()) == []


def test_empty_lines_are_left_out() -> None:
    assert all_lines(LineSplitter(), b"\n\r\n  \nx\n") == [b"x"]


def test_the_limit_is_8_mib_and_a_line_of_that_size_still_passes() -> None:
    """Decision D9: a message has 8 MiB on both transports."""
    assert MAX_LINE_BYTES == 8 * 1024 * 1024
    splitter = LineSplitter(limit=10)
    assert all_lines(splitter, b"0123456789\n") == [b"0123456789"]
    assert all_lines(splitter, b"0123456789a\n") == [Oversized(None)]


def test_lines_after_an_oversized_one_pass() -> None:
    """Checklist 298: the server keeps serving."""
    splitter = LineSplitter(limit=10)
    assert all_lines(splitter, b"x" * 25, b"y" * 25, b"\nnext\n") == [Oversized(None), b"next"]


def test_an_oversized_line_is_not_kept_in_memory() -> None:
    splitter = LineSplitter(limit=1000)
    for _ in range(100):
        all_lines(splitter, b"x" * 1000)
    assert len(splitter._line) < 1000  # pyright: ignore[reportPrivateUsage] - the buffer is the subject


FILLER = "x" * 20_000


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"id": 8, "content": FILLER}}, 7),
        ({"id": "a-1", "jsonrpc": "2.0", "method": "tools/call", "params": {"content": FILLER}}, "a-1"),
        ({"method": "tools/call", "params": {"content": FILLER, "id": 9}, "jsonrpc": "2.0", "id": 3}, 3),
        ({"method": "tools/call", "params": {"content": FILLER}, "id": 4, "jsonrpc": "2.0"}, 4),
        ({"jsonrpc": "2.0", "method": "tools/call", "params": {"content": FILLER}, "id": 5}, 5),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_id_of_an_oversized_request_is_found(
    message: dict[str, object], expected: int | str, separators: tuple[str, str]
) -> None:
    """A client that waits for this request gets its error instead of a timeout."""
    splitter = LineSplitter(limit=10_000)
    line = json.dumps(message, separators=separators).encode() + b"\n"
    assert all_lines(splitter, line[:6000], line[6000:]) == [Oversized(expected)]


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"content": FILLER, "id": 3}},
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"id": 3, "content": FILLER}},
        {"jsonrpc": "2.0", "params": {"content": FILLER, "a": ',"jsonrpc":"2.0","id":3}'}},
        {"jsonrpc": "2.0", "id": None, "params": {"content": FILLER}},
        {"jsonrpc": "2.0", "id": 1.5, "params": {"content": FILLER}},
    ],
)
def test_no_other_id_is_taken_for_the_id_of_the_request(message: dict[str, object]) -> None:
    splitter = LineSplitter(limit=10_000)
    assert all_lines(splitter, json.dumps(message, separators=(",", ":")).encode() + b"\n") == [Oversized(None)]
