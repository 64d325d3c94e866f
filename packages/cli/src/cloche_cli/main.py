"""Process entry of `abx` and `cloche`.

Only modules that the interpreter has loaded anyway are imported before we know which
command is wanted: `abx mcp start` must answer its client quickly, and from its first
instruction on stdout belongs to the protocol.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status of the process.

    Args:
        arguments: the words after the program's name; default: those of this process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words == ["mcp", "start"]:
            from cloche_cli.stdio_server import serve

            return serve()
        from cloche_cli.launch import launch

        return launch(words)
    except KeyboardInterrupt:  # before there was anything to clean up
        return 130


if __name__ == "__main__":
    sys.exit(main())
