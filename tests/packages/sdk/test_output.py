"""The output rule of D9: bounded while reading, honest about what is missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cloche_sdk.output import OutputCapture, TextDecoder


def _capture(*chunks: bytes, kept: int = 1_048_576) -> OutputCapture:
    capture = OutputCapture(kept)
    for chunk in chunks:
        capture.feed(chunk)
    return capture


def test_small_output_comes_back_unchanged() -> None:
    """O4: blank lines and carriage returns are the program's, not ours."""
    text = _capture(b"a\n\n", b"b\n\n\n", b"c\r\n").result()
    assert text.text == "a\n\nb\n\n\nc\r\n"
    assert not text.truncated
    assert not text.replaced


def test_a_character_split_between_chunks_is_one_character() -> None:
    """O1: chunk borders are no errors."""
    text = _capture("☹".encode()[:1], "☹".encode()[1:]).result()
    assert text.text == "☹"
    assert not text.replaced


def test_broken_bytes_are_replaced_and_flagged() -> None:
    """O1: a byte that is not UTF-8 does not end the run."""
    text = _capture(b"ok \xff end").result()
    assert text.text == "ok \ufffd end"
    assert text.replaced


def test_a_genuine_replacement_character_is_not_flagged() -> None:
    """O1: the flag speaks of broken bytes, not of the character U+FFFD."""
    assert not _capture("\ufffd".encode()).result().replaced


def test_long_output_keeps_both_ends_and_counts_all() -> None:
    """O8, O9: head and tail, the flag and the total."""
    capture = OutputCapture()
    for index in range(3000):
        capture.feed(f"{index:07d}\n".encode() * 1000)
    text = capture.result()
    assert text.truncated
    assert text.total_bytes == 24_000_000
    assert text.text.startswith("0000000\n")
    assert text.text.endswith("0002999\n")
    assert len(text.text) < 1_100_000


def test_clipping_counts_what_it_leaves_out() -> None:
    """O9: the marker's number and the shown text add up to the total."""
    text = _capture(("é" * 50_000).encode()).result().clipped()
    assert text.truncated
    assert text.omitted_bytes == 100_000 - 60_000
    assert text.text.count("é") == 30_000


def test_memory_stays_bounded_while_reading() -> None:
    """O7: the cap works while reading, not afterwards."""
    capture = OutputCapture(3000)
    for _ in range(1000):
        capture.feed(b"x" * 10_000)
    held = len(capture._head) + len(capture._tail)  # pyright: ignore[reportPrivateUsage]  the bound itself is under test
    assert held <= 4000
    assert capture.total_bytes == 10_000_000


@given(st.binary(max_size=400), st.lists(st.integers(1, 60), max_size=20), st.integers(9, 90))
def test_kept_and_left_out_bytes_add_up(data: bytes, cuts: list[int], kept: int) -> None:
    """O6: nothing is lost silently, wherever the chunks are cut."""
    capture = OutputCapture(kept)
    rest = data
    for cut in cuts:
        capture.feed(rest[:cut])
        rest = rest[cut:]
    capture.feed(rest)
    text = capture.result()
    shown = (text.head + text.tail).encode("utf-8", "surrogateescape")
    assert len(shown) + text.omitted_bytes == text.total_bytes == len(data)
    assert data.startswith(text.head.encode("utf-8", "surrogateescape"))
    assert data.endswith(text.tail.encode("utf-8", "surrogateescape"))


@given(st.text(max_size=80), st.integers(1, 7))
def test_the_callback_decoder_gives_the_same_text(text: str, step: int) -> None:
    """O10: what a callback sees is what the program wrote."""
    data = text.encode()
    decoder = TextDecoder()
    parts = [decoder.feed(data[i : i + step]) for i in range(0, len(data), step)]
    parts.append(decoder.feed(b"", final=True))
    assert "".join(parts) == text
    assert not decoder.replaced
