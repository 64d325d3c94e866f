"""Our entry goes in and out of a client's file, and no other byte changes."""

import json
import tomllib
from typing import Any, cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cloche_cli.clients.edit import Broken, Unsafe
from cloche_cli.clients.formats import editor
from tests.packages.cli.client_texts import BROKEN, CASES, ENTRY, PATHS, UNSAFE

OTHER = {**ENTRY, "args": ["mcp", "start", "--read-only"]}


def _is_insertion(text: str, longer: str) -> bool:
    """Whether only something was put in, in one or two places; the second is a comma."""
    start = _common(text, longer)
    end = _common(text[::-1], longer[::-1])
    if start + end >= len(text):
        return True
    return longer[start] == "," and _is_insertion(text[start:], longer[start + 1 :])


def _common(one: str, two: str) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


@pytest.mark.parametrize(("form", "name", "text"), CASES, ids=lambda value: value if len(value) < 40 else "")
def test_an_entry_goes_in_without_touching_another_byte(form: str, name: str, text: str) -> None:
    """Seed 001, 167: other servers and other keys are preserved."""
    edited = editor(form).put(text, PATHS[form], ENTRY)
    assert editor(form).find(edited.text, PATHS[form]) == ENTRY
    assert _is_insertion(text, edited.text)


@pytest.mark.parametrize(("form", "name", "text"), CASES, ids=lambda value: value if len(value) < 40 else "")
def test_an_entry_that_is_there_is_replaced_and_nothing_else(form: str, name: str, text: str) -> None:
    """Seed 001, 168."""
    put = editor(form).put
    once = put(text, PATHS[form], ENTRY).text
    assert put(once, PATHS[form], ENTRY).text == once
    other = put(once, PATHS[form], OTHER).text
    assert other != once
    assert put(other, PATHS[form], ENTRY).text == once


@pytest.mark.parametrize(("form", "name", "text"), CASES, ids=lambda value: value if len(value) < 40 else "")
def test_an_entry_comes_out_and_leaves_the_rest(form: str, name: str, text: str) -> None:
    """Without the backup two things may stay: the line end that was missing, and space in an object that was empty."""
    edited = editor(form).put(text, PATHS[form], ENTRY)
    left = editor(form).take(edited.text, PATHS[form], edited.made)
    if form.startswith("json"):
        assert _without_space_in_braces(left) == _without_space_in_braces(text)
    else:
        assert left in (text, f"{text}\n")


def _without_space_in_braces(text: str) -> str:
    head, brace, tail = text.partition("{")
    return (
        head + brace + (_without_space_in_braces(tail.lstrip() if tail.lstrip()[:1] == "}" else tail) if brace else "")
    )


@pytest.mark.parametrize(("form", "text", "line", "word"), BROKEN)
def test_a_broken_text_is_refused_with_its_line(form: str, text: str, line: int, word: str) -> None:
    """Seed 001, 174."""
    with pytest.raises(Broken) as caught:
        editor(form).put(text, PATHS[form], ENTRY)
    assert caught.value.line == line
    assert word in caught.value.what


@pytest.mark.parametrize(("form", "text", "line"), UNSAFE)
def test_a_text_that_cannot_be_edited_safely_is_refused(form: str, text: str, line: int | None) -> None:
    with pytest.raises(Unsafe) as caught:
        editor(form).put(text, PATHS[form], ENTRY)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ('mcp_servers = {agent-sandbox = {command = "old"}, git = {a = 1}}\n', "mcp_servers = {git = {a = 1}}\n"),
        ('[mcp_servers]\n"agent-sandbox" = {command = "}"}\ngit = {}\n', "[mcp_servers]\ngit = {}\n"),
        (
            "[mcp_servers.git]\na = 1\n[p]\nq = 1\n[mcp_servers.agent-sandbox]\n",
            "[mcp_servers.git]\na = 1\n[p]\nq = 1\n",
        ),
    ],
)
def test_an_entry_that_a_person_wrote_in_their_own_way_is_replaced_and_taken_out(text: str, without: str) -> None:
    assert editor("toml").take(text, PATHS["toml"], ()) == without
    replaced = editor("toml").put(text, PATHS["toml"], ENTRY).text
    assert tomllib.loads(replaced)["mcp_servers"]["agent-sandbox"] == ENTRY
    assert _is_insertion(without, replaced)


# No classes of characters: the tables of Unicode take hypothesis seconds.
LETTERS = st.sampled_from(list("ab1é\"\\/{}[],:#'\n\t \u2028\x7f🐍"))
KEYS = st.text(LETTERS, max_size=6) | st.sampled_from(["mcpServers", "a"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": st.dictionaries(KEYS, JSON_VALUES, max_size=3),
        "theme": JSON_VALUES,
        "ünï": JSON_VALUES,
    },
)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])
ENDS = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=60, deadline=None, database=None)
@given(document=DOCUMENTS, indent=LAYOUTS, end=ENDS, ascii_only=st.booleans(), mark=st.booleans())
def test_any_json_keeps_every_byte(
    document: dict[str, Any], indent: int | str | None, end: str, ascii_only: bool, mark: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("\n", end)
    text = ("\ufeff" if mark else "") + text
    for form in ("json", "jsonc"):
        edited = editor(form).put(text, PATHS[form], ENTRY)
        assert _is_insertion(text, edited.text)
        read = json.loads(edited.text.removeprefix("\ufeff"))
        assert read["mcpServers"].pop("agent-sandbox") == ENTRY
        assert read == {**document, "mcpServers": document.get("mcpServers", {})}
        left = editor(form).take(edited.text, PATHS[form], edited.made)
        assert json.loads(left.removeprefix("\ufeff")) == document
        assert editor(form).take(text, PATHS[form], ()) == text


COMMENTS = st.sampled_from(["", " ", "\n", "// c\n", "/* , } */", ' // "x": {\n', "\r\n", "\t"])


@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data(), document=DOCUMENTS)
def test_any_json_with_comments_keeps_every_byte(data: st.DataObject, document: dict[str, Any]) -> None:
    text = _scattered(data, document)
    edited = editor("jsonc").put(text, PATHS["jsonc"], ENTRY)
    assert editor("jsonc").find(edited.text, PATHS["jsonc"]) == ENTRY
    assert _is_insertion(text, edited.text)
    left = editor("jsonc").take(edited.text, PATHS["jsonc"], edited.made)
    assert editor("jsonc").find(left, ()) == editor("jsonc").find(text, ())
    assert editor("jsonc").put(edited.text, PATHS["jsonc"], ENTRY).text == edited.text


def _scattered(data: st.DataObject, value: Any) -> str:
    """JSON with comments and space wherever they may stand, and commas behind last members."""

    def gap() -> str:
        return data.draw(COMMENTS)

    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        parts = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{_scattered(data, one)}{gap()}" for key, one in pairs]
        opening, closing = "{", "}"
    elif isinstance(value, list):
        parts = [f"{gap()}{_scattered(data, one)}{gap()}" for one in cast("list[Any]", value)]
        opening, closing = "[", "]"
    else:
        return json.dumps(value)
    last = "," if parts and data.draw(st.booleans()) else ""
    return f"{gap()}{opening}{','.join(parts)}{last}{gap()}{closing}"


WORDS = st.text(st.sampled_from(list("ab1é\"\\/{}[],:#'&*!|> 🐍-")), max_size=8)
SCALARS = st.booleans() | st.integers(-1000, 1000) | WORDS
SERVERS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True),
    st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), SCALARS | st.lists(SCALARS, max_size=3), max_size=3),
    max_size=3,
)


@settings(max_examples=60, deadline=None, database=None)
@given(
    servers=SERVERS, other=st.dictionaries(st.sampled_from(["a", "b", "z"]), SCALARS, max_size=2), flow=st.booleans()
)
def test_any_yaml_keeps_every_byte(servers: dict[str, Any], other: dict[str, Any], flow: bool) -> None:
    document = {**other, "extensions": servers} if servers else other
    text = yaml.safe_dump(document, allow_unicode=True, default_flow_style=flow, sort_keys=False) if document else ""
    edited = editor("yaml").put(text, PATHS["yaml"], ENTRY)
    assert _is_insertion(text, edited.text)
    assert yaml.safe_load(edited.text)["extensions"] == {**servers, "agent-sandbox": ENTRY}
    assert editor("yaml").take(edited.text, PATHS["yaml"], edited.made) == text


@settings(max_examples=60, deadline=None, database=None)
@given(servers=SERVERS, other=st.dictionaries(st.sampled_from(["a", "b", "z"]), SCALARS, max_size=2), end=ENDS)
def test_any_toml_keeps_every_byte(servers: dict[str, Any], other: dict[str, Any], end: str) -> None:
    lines = [f"{key} = {_toml(value)}" for key, value in other.items()]
    for name, server in servers.items():
        lines += ["", f"[mcp_servers.{name}] # {name}", *(f"{key} = {_toml(value)}" for key, value in server.items())]
    text = "".join(line + end for line in lines)
    edited = editor("toml").put(text, PATHS["toml"], ENTRY)
    assert _is_insertion(text, edited.text)
    assert tomllib.loads(edited.text)["mcp_servers"] == {**servers, "agent-sandbox": ENTRY}
    assert editor("toml").take(edited.text, PATHS["toml"], edited.made) == text


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, cast("list[Any]", value))) + "]"
    return json.dumps(value, ensure_ascii=False)
