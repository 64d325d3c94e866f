"""Process entry of `sandbox-mcp`."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cloche_mcp_stdio.wire import Wire, reserve

USAGE = """\
usage: sandbox-mcp --set NAME [--tools NAME,…] [--exclude-tools NAME,…] [--read-only] [--mirror-text]

Serve one tool set to an MCP client over stdin and stdout.

  --set NAME               tool set to serve: sandbox, or management
  --tools NAME,…           offer these tools only
  --exclude-tools NAME,…   offer none of these; wins over --tools
  --read-only              offer only tools that change nothing; wins over both
  --mirror-text            show results as text, too, for a client that shows nothing else; management leaves it out
  --version                print the version and end
  --help                   print this text and end

Example: sandbox-mcp --set sandbox --exclude-tools upload_file,download_file
"""
_LISTS = ("--tools", "--exclude-tools")


@dataclass
class _Asked:
    """What the words of the command line ask for."""

    set_name: str = ""
    only: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    read_only: bool = False
    mirror_text: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, and return the exit status of the process.

    Args:
        arguments: the words after the program's name; default: those of this process.
    """
    wire = reserve()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--help"], ["-h"], ["--version"]):
        return _tell(wire, _version() if words == ["--version"] else USAGE)
    asked = _asked(words)
    if asked is None:
        sys.stderr.write("sandbox-mcp: give exactly one tool set with --set NAME, and each option once\n\n" + USAGE)
        return 2
    try:
        from cloche_contract.kernel.enabled import ToolFilter
        from cloche_mcp_stdio import serve

        tools = ToolFilter(asked.only, asked.exclude, asked.read_only)
        return serve(asked.set_name, tools=tools, mirror_text=asked.mirror_text)
    except KeyboardInterrupt:  # before the event loop took the signal over: nothing was created yet
        return 130


def _asked(words: Sequence[str]) -> _Asked | None:
    """What the words ask for, or None where they are not understood."""
    asked, seen, rest = _Asked(), set[str](), _split(words)
    for word in rest:
        if word in seen:
            return None
        seen.add(word)
        if word in ("--read-only", "--mirror-text"):
            setattr(asked, word.removeprefix("--").replace("-", "_"), True)
            continue
        value = next(rest, "") if word == "--set" or word in _LISTS else ""
        if not value or value.startswith("-"):
            return None
        if word == "--set":
            asked.set_name = value
        elif word == "--tools":
            asked.only = _names(value)
        else:
            asked.exclude = _names(value)
    return asked if asked.set_name else None


def _split(words: Sequence[str]) -> Iterator[str]:
    """The words, `--name=value` as two."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.startswith("--"):
            yield from (name, value)
        else:
            yield word


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _tell(wire: Wire, text: str) -> int:
    # Asked for by a person instead of serving: no client is listening for frames.
    os.write(wire.write_fd if wire.can_answer else 2, text.encode())
    return 0


def _version() -> str:
    from importlib.metadata import version

    return f"sandbox-mcp {version('cloche-mcp-stdio')}\n"
