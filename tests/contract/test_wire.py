"""The framing that clients of the agent share: however the bytes are cut, the same messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloche_contract.wire.connect import FramingError, StreamDecoder, catalogue_error, encode_message
from cloche_contract.wire.ndjson import LineDecoder, encode_line

MESSAGES: list[dict[str, Any]] = [{"event": {"start": {"pid": 7}}}, {}, {"text": "ü\n\u2028"}]
END = encode_message({}, end=True)


def _cut(raw: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(raw[:size])
        raw = raw[size:]
    return [*chunks, raw]


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=9), max_size=40))
def test_stream_is_the_same_however_it_is_cut(sizes: list[int]) -> None:
    raw = b"".join(map(encode_message, MESSAGES)) + END
    decoder = StreamDecoder()
    assert [message for chunk in _cut(raw, sizes) for message in decoder.feed(chunk)] == MESSAGES
    assert decoder.finished


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=9), max_size=40))
def test_lines_are_the_same_however_they_are_cut(sizes: list[int]) -> None:
    raw = b"\n".join(json.dumps(message).encode() for message in MESSAGES)
    decoder = LineDecoder()
    found = [message for chunk in _cut(raw, sizes) for message in decoder.feed(chunk)]
    assert found + list(decoder.finish()) == MESSAGES


def test_stream_without_its_last_frame_is_not_finished() -> None:
    decoder = StreamDecoder()
    assert list(decoder.feed(encode_message({"a": 1}))) == [{"a": 1}]
    assert not decoder.finished


def test_error_of_a_stream_cannot_be_taken_for_its_end() -> None:
    decoder = StreamDecoder()
    error = {"code": "deadline_exceeded", "message": "too late"}
    assert list(decoder.feed(encode_message({"error": error}, end=True))) == [{"error": error}]
    assert decoder.finished


@pytest.mark.parametrize(
    "raw",
    [
        b"\x01\x00\x00\x00\x02{}",
        b"\x00\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x00\x02{:",
        b"\x00\x00\x00\x00\x01\xff",
        END + encode_message({}),
    ],
    ids=["compressed", "too-long", "no-object", "no-json", "no-text", "after-the-end"],
)
def test_stream_that_breaks_the_protocol_is_refused(raw: bytes) -> None:
    with pytest.raises(FramingError):
        list(StreamDecoder(1024).feed(raw))


@pytest.mark.parametrize("raw", [b"[1]\n", b"{\n", b"x" * 2000], ids=["no-object", "no-json", "too-long"])
def test_line_that_breaks_the_protocol_is_refused(raw: bytes) -> None:
    with pytest.raises(FramingError):
        list(LineDecoder(1024).feed(raw))


def test_blank_lines_are_nothing() -> None:
    assert list(LineDecoder().feed(b"\n\r\n" + encode_line({"a": 1}) + b"\n")) == [{"a": 1}]


def test_catalogue_error_is_found_in_both_kinds_of_body() -> None:
    value = {"code": "cwd_not_found"}
    connect = {"code": "invalid_argument", "details": [{"type": "other"}, {"type": "cloche.Error", "value": value}]}
    assert catalogue_error(connect) == value
    assert catalogue_error({"code": 404, "message": "", "cloche": value}) == value


@pytest.mark.parametrize("body", [{}, {"details": "x"}, {"details": [1]}, {"cloche": 7}, {"details": [{"type": 1}]}])
def test_body_without_a_catalogue_error_has_none(body: dict[str, Any]) -> None:
    assert catalogue_error(body) is None
