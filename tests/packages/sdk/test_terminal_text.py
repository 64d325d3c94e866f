"""What clean output keeps, piece by piece. Source: fault O16, ECMA-48."""

from __future__ import annotations

import pytest

from cloche_sdk.terminal_text import CleanCapture


def _shown(*pieces: bytes) -> str:
    capture = CleanCapture()
    for piece in pieces:
        capture.feed(piece)
    first = capture.result().text
    assert capture.result().text == first
    return first


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain\nlines\n\n", "plain\nlines\n\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"10%\r20%\r100%", "100%"),
        (b"long text\rshort", "shorttext"),
        (b"long text\r\x1b[Kshort", "short"),
        (b"long text\x1b[2Kx", "x"),
        (b"abc\x1b[1Gx", "xbc"),
        (b"abc\b\bX", "aXc"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38;5;200mpink\x1b[m", "red pink"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP1$r0m\x1b\\after", "after"),
        (b"\x1b[?25lhidden\x1b[?25h", "hidden"),
        (b"\x1b(Btext\x1b=\x1b7", "text"),
        ("é\rñ".encode(), "ñ"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_o16_text_is_what_a_terminal_shows_in_the_end(raw: bytes, shown: str) -> None:
    """O16: also when every byte comes by itself."""
    assert _shown(raw) == shown
    assert _shown(*(raw[index : index + 1] for index in range(len(raw)))) == shown


def test_o16_counts_are_those_of_the_raw_bytes() -> None:
    """D9: totals say what was written, not what is left of it."""
    capture = CleanCapture()
    capture.feed(b"\x1b[31mred\x1b[0m")
    found = capture.result()
    assert (found.text, found.total_bytes, found.truncated) == ("red", 12, False)


def test_o16_a_bar_of_many_frames_is_bounded_by_what_it_shows() -> None:
    """O16: tens of thousands of frames are one line; endless lines and sequences without end are bounded."""
    assert _shown(*(b"\r%d%%" % (n % 100) for n in range(50_000))) == "99%"
    assert len(_shown(*([b"x" * 10_000] * 300))) < 1_100_000
    assert _shown(b"\x1b]" + b"t" * 10_000 + b"end").endswith("end")
