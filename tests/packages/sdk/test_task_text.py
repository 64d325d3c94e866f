"""Pages of a task's stream, put together, are the stream: whole characters, hidden values hidden."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cloche_sdk.task_text import HIDDEN, Span, TaskText, cut, window

TEXT = st.lists(st.sampled_from(["a", "é", "€", "🎈", "secret", "sec", "\n"]), max_size=20).map("".join)
LIMITS = st.integers(1, 9)


def page(stream: bytes, offset: int, limit: int, hide: tuple[bytes, ...], *, open_end: bool = False) -> TaskText:
    """What the SDK does with an agent that keeps everything."""
    first, most = window(offset, limit, hide)
    first = min(first, len(stream))
    return cut(Span(stream[first : first + most], first, len(stream), False, open_end), offset, limit, hide)


def read(stream: bytes, limit: int, hide: tuple[bytes, ...] = ()) -> str:
    text, offset = "", 0
    while offset < len(stream):
        found = page(stream, offset, limit, hide)
        assert found.next_offset > offset
        text, offset = text + found.text, found.next_offset
    return text


@given(TEXT, LIMITS)
def test_no_page_splits_a_character(text: str, limit: int) -> None:
    """Checklist 304: every page advances, also where one character is longer than the limit."""
    assert read(text.encode(), limit) == text


@given(TEXT, LIMITS)
@example("secsecret", 3)
def test_a_hidden_value_is_hidden_wherever_the_pages_are_cut(text: str, limit: int) -> None:
    """Checklist 309: on the side of the host, too."""
    assert read(text.encode(), limit, (b"secret",)) == text.replace("secret", HIDDEN.decode())


def test_what_may_become_a_hidden_value_waits_while_the_task_runs() -> None:
    hide = (b"secret",)
    assert page(b"x sec", 0, 99, hide, open_end=True).text == "x "
    assert page(b"x sec", 0, 99, hide).text == "x sec"


def test_half_a_character_waits_while_the_task_runs() -> None:
    half = "é".encode()[:1]
    assert page(b"x" + half, 0, 99, (), open_end=True) == TaskText("x", 1, 2)
    assert page(half, 0, 99, (), open_end=True) == TaskText("", 0, 1)
    assert page(half, 0, 99, ()) == TaskText("\ufffd", 1, 1, replaced=True)


def test_o1_bytes_that_are_not_text_are_replaced_and_flagged() -> None:
    """inspect_k8s_sandbox#206."""
    assert page(b"a\xffb", 0, 99, ()) == TaskText("a\ufffdb", 3, 3, replaced=True)
    assert not page("\ufffd".encode(), 0, 99, ()).replaced


def test_what_is_no_longer_kept_is_counted() -> None:
    span = Span(b"end", 100, 103, True, False)
    assert cut(span, 10, 99, ()) == TaskText("end", 103, 103, truncated=True, skipped=90)


def test_an_offset_beyond_the_end_gives_nothing() -> None:
    assert page(b"abc", 9, 5, ()) == TaskText("", 3, 3)
