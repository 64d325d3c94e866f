"""Parts of Cloche that come with an extra, and what to say where they are missing."""

from importlib.util import find_spec

from cloche_cli.usage import Refused


def require(extra: str, *modules: str) -> None:
    """Go on only where the modules of an extra are installed.

    Raises:
        Refused: one is missing; the text has the command that installs it.
    """
    if any(find_spec(module) is None for module in modules):
        sentence = f"is not installed. Install it: pip install 'cloche[{extra}]'"
        raise Refused("extra", sentence, field=f"The part {extra}")
