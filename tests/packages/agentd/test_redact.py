"""Secrets in a stream are replaced, however the stream is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cloche_agentd.redact import REPLACEMENT, Redactor, secrets_of

# Few letters, so that beginnings, overlaps and secrets inside of secrets are common.
LETTERS = st.text("ab", min_size=4, max_size=7).map(str.encode)


def shown(secrets: list[bytes], pieces: list[bytes]) -> bytes:
    redactor = Redactor(secrets)
    return b"".join(map(redactor.feed, pieces)) + redactor.finish()


@given(st.lists(LETTERS, min_size=1, max_size=3), st.lists(st.text("abx", max_size=9).map(str.encode), max_size=12))
def test_no_cut_lets_a_secret_through(secrets: list[bytes], pieces: list[bytes]) -> None:
    """Checklist 309: also where the writes split a secret, and where one begins inside another."""
    left = shown(secrets, pieces)
    assert [secret for secret in secrets if secret in left.replace(REPLACEMENT, b"|")] == []


@given(st.lists(LETTERS, min_size=1, max_size=3), st.lists(st.text("xyz", max_size=9).map(str.encode), max_size=12))
def test_what_holds_no_secret_comes_through_unchanged(secrets: list[bytes], pieces: list[bytes]) -> None:
    assert shown(secrets, pieces) == b"".join(pieces)


def test_a_secret_that_begins_another_waits_for_the_longer_one() -> None:
    redactor = Redactor([b"abcd", b"abcdef"])
    assert redactor.feed(b"x abcd") == b"x "
    assert redactor.feed(b"ef y") == REPLACEMENT + b" y"
    assert redactor.feed(b"abcd") == b""
    assert redactor.finish() == REPLACEMENT


def test_output_without_a_beginning_of_a_secret_is_not_held_back() -> None:
    """Checklist 308: progress is visible while the program runs."""
    assert Redactor([b"hunter2!"]).feed(b"10 %") == b"10 %"


def test_a_long_secret_costs_no_time_per_byte() -> None:
    """A variable may hold 32 KiB; every piece of output is compared with it."""
    secret = b"a" * 32_768
    redactor = Redactor([secret])
    assert redactor.feed(b"a" * 32_767) == b""
    assert redactor.feed(b"a" * 10) + redactor.finish() == REPLACEMENT + b"a" * 9


def test_secrets_are_told_by_the_name_of_their_variable() -> None:
    """Systems facts 1.3."""
    envs = {
        "API_KEY": "k-12345",
        "github_token": "t-12345",
        "MODE": "production",
        "DB_PASSWORD": "abc",
        "MONKEYS": "many",
    }
    assert sorted(secrets_of(envs)) == [b"k-12345", b"many", b"t-12345"]
