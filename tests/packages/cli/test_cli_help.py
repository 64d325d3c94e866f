"""Help: the same until somebody means to change it, with examples that are true."""

import shlex
from collections.abc import Iterator, Sequence

import click
import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from cloche_cli.root import abx as root
from tests.packages.cli.ran import Abx


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(_commands(root))


def find(path: Sequence[str]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_cli_help(path: tuple[str, ...], abx: Abx, snapshot: SnapshotAssertion) -> None:
    """Architecture 3.8: help texts are a contract."""
    ran = abx([*path, "--help"])
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == snapshot(extension_class=JSONSnapshotExtension)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_examples_and_its_own_json_option(path: tuple[str, ...]) -> None:
    command = find(path)
    assert "Examples:" in (command.epilog or "")
    assert any("--json" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_example_is_a_command_line_that_parses(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "API_TOKEN"):
        monkeypatch.setenv(name, "x")
    examples = [line.strip() for line in (find(path).epilog or "").splitlines()[2:]]
    assert examples
    for words in [words for example in examples for words in _abx_calls(example)]:
        _parse(words)


def _abx_calls(example: str) -> Iterator[list[str]]:
    """The words after each `abx` of a shell line; the shell's own words end a call."""
    line = example.replace("$(", " ( ").replace(")", " ) ") if "$(" in example else example
    words = shlex.split(line)
    while "abx" in words:
        words = words[words.index("abx") + 1 :]
        end = next((index for index, word in enumerate(words) if word in ("&&", "|", ")", ">")), len(words))
        yield words[:end]


def _parse(words: Sequence[str]) -> None:
    command: click.Command = root
    rest = [word for word in words[:1] if word != "--json"] + list(words[1:])
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), rest.pop(0))
        assert found is not None
        command = found
    command.make_context("abx", rest)
