"""Process entry of `abx` and `cloche`.

Only modules that the interpreter has loaded anyway are imported before we know which
command is wanted: `abx mcp start` must answer its client quickly, and from its first
instruction on stdout belongs to the protocol.
"""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status of the process.

    Args:
        arguments: the words after the program's name; default: those of this process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Looking for plugins, pydantic reads the metadata of everything that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        if words == ["mcp", "start"]:
            try:
                from cloche_cli.stdio_server import serve
            except ModuleNotFoundError:
                pass  # the extra `mcp` is not installed: the command says so
            else:
                return serve()
        if _makes_a_local_sandbox(words):
            # Its process loads while we do: most of a cold start is importing.
            try:
                from cloche_local import early
            except ModuleNotFoundError:
                pass  # Python 3.10 has no local provider
            else:
                early.begin()
        from cloche_cli.launch import launch

        return launch(words)
    except KeyboardInterrupt:  # before there was anything to clean up
        return 130


def _makes_a_local_sandbox(words: Sequence[str]) -> bool:
    """Whether these words, and the environment, most likely make one. A guess: a wrong one costs no more than time."""
    if words[:1] not in (["run"], ["exec"]) or os.environ.get("ABX_PROVIDER", "local") != "local":
        return False
    if os.environ.get("ABX_SANDBOX_API_KEY"):
        return False
    ours = words[: words.index("--")] if "--" in words else words
    return not any(word.startswith(("--help", "-h", "--provider", "--sandbox")) for word in ours)


if __name__ == "__main__":
    sys.exit(main())
