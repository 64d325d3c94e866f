"""Process entry of `sandbox-mcp`."""

import os
import sys
from collections.abc import Sequence

from cloche_mcp_stdio.wire import Wire, reserve

USAGE = """\
usage: sandbox-mcp --set NAME

Serve one tool set to an MCP client over stdin and stdout.

  --set NAME   tool set to serve, for example: sandbox
  --version    print the version and end
  --help       print this text and end

Example: sandbox-mcp --set sandbox
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, and return the exit status of the process.

    Args:
        arguments: the words after the program's name; default: those of this process.
    """
    wire = reserve()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--help"], ["-h"], ["--version"]):
        return _tell(wire, _version() if words == ["--version"] else USAGE)
    set_name = _set_name(words)
    if set_name is None:
        sys.stderr.write("sandbox-mcp: give exactly one tool set with --set NAME\n\n" + USAGE)
        return 2
    try:
        from cloche_mcp_stdio import serve

        return serve(set_name)
    except KeyboardInterrupt:  # before the event loop took the signal over: nothing was created yet
        return 130


def _set_name(words: Sequence[str]) -> str | None:
    match list(words):
        case ["--set", name] if name and not name.startswith("-"):
            return name
        case [word] if word.startswith("--set="):
            return word.removeprefix("--set=") or None
        case _:
            return None


def _tell(wire: Wire, text: str) -> int:
    # Asked for by a person instead of serving: no client is listening for frames.
    os.write(wire.write_fd if wire.can_answer else 2, text.encode())
    return 0


def _version() -> str:
    from importlib.metadata import version

    return f"sandbox-mcp {version('cloche-mcp-stdio')}\n"
