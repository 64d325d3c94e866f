"""Pages of a task as a terminal shows them. Source: fault O16; issue 4, part 4; seed 000, paging by bytes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cloche_sdk.task_clean import clean_window, cut_clean
from cloche_sdk.task_text import Span, TaskText
from cloche_sdk.terminal_text import CleanCapture

COLOURED = st.lists(
    st.sampled_from(["a", "é", "🎈", "\n", "\x1b[31m", "\x1b[0m", "\x1b]0;title\x07", "\x1b(B", "word ", "\r\n"]),
    max_size=30,
).map("".join)
DRAWN = st.lists(
    st.sampled_from(["10%", "long bar", "\r", "\x1b[K", "\x1b[2K", "\n", "é", "\b", "\x1b[1G"]), max_size=30
).map("".join)
LIMITS = st.integers(4, 12)


def page(stream: bytes, offset: int, limit: int, hide: tuple[bytes, ...] = (), *, open_end: bool = False) -> TaskText:
    """What the SDK does with an agent that keeps everything."""
    first, most = clean_window(offset, limit, hide)
    first = min(first, len(stream))
    return cut_clean(Span(stream[first : first + most], first, len(stream), False, open_end), offset, limit, hide)


def pages(stream: bytes, limit: int) -> list[str]:
    texts: list[str] = []
    offset = 0
    while offset < len(stream):
        found = page(stream, offset, limit)
        assert found.next_offset > offset
        texts.append(found.text)
        offset = found.next_offset
    return texts


def whole(stream: bytes) -> str:
    capture = CleanCapture()
    capture.feed(stream)
    return capture.result().text


@given(COLOURED, LIMITS)
@example("\x1b[31mred\x1b[0m", 4)
def test_o16_a_control_sequence_cut_by_a_page_border_is_left_out_whole(text: str, limit: int) -> None:
    """Put together, the pages are what a terminal shows of the stream, wherever they are cut."""
    assert "".join(pages(text.encode(), limit)) == whole(text.encode())


@given(DRAWN, LIMITS)
@example("long bar\r\x1b[K10%", 8)
def test_o16_the_last_page_of_a_line_shows_what_the_terminal_shows_in_the_end(text: str, limit: int) -> None:
    """A line that was drawn again after a page border comes again, as a line of its own; no control sequence comes."""
    shown = pages(text.encode(), limit)
    assert not any("\x1b" in one or "\r" in one for one in shown)
    last = whole(text.encode()).rpartition("\n")[2]
    assert "".join(shown).endswith(last)


def test_o16_a_bar_of_half_a_megabyte_is_one_page() -> None:
    """30 calls that show one frame each would be the noise over again."""
    bar = b"".join(b"\r%3d%% |%s|" % (n // 100, b"#" * 50) for n in range(8_000)) + b"\ndone\n"
    found = page(bar, 0, 1000)
    assert (found.text, found.next_offset) == (f" 79% |{'#' * 50}|\ndone\n", len(bar))


def test_o16_a_bar_that_runs_shows_its_state_at_each_look() -> None:
    """Each look shows the line as it is, and waits for what is new."""
    bar = b"start\n10%"
    first = page(bar, 0, 100, open_end=True)
    assert (first.text, first.next_offset) == ("start\n10%", len(bar))
    assert page(bar, len(bar), 100, open_end=True).text == ""
    bar += b"\r20%"
    second = page(bar, first.next_offset, 100, open_end=True)
    assert (second.text, second.next_offset) == ("\n20%", len(bar))
    bar += b" done\n"
    assert page(bar, second.next_offset, 100).text == " done\n"


def test_a_clean_page_is_bounded_by_what_it_shows() -> None:
    """O18: text without control sequences is paged as ever."""
    found = page(b"line\n" * 100_000, 0, 1000)
    assert 500 <= len(found.text) <= 1000
    assert found.next_offset == len(found.text)


def test_a_value_with_a_colour_in_it_stays_hidden() -> None:
    """Hiding the sequences must not show what they cut in two."""
    assert page(b"sec\x1b[0mret\n", 0, 100, (b"secret",)).text == "[REDACTED]\n"
    assert page(b"a secret\n", 0, 100, (b"secret",)).text == "a [REDACTED]\n"


def test_o1_bytes_that_are_not_text_are_flagged_on_clean_pages_too() -> None:
    assert page(b"a\xff\n", 0, 100) == TaskText("a\ufffd\n", 3, 3, replaced=True)
    assert not page("\ufffd".encode(), 0, 100).replaced
