"""The command that runs this program, as another program must write it."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

_NAMES: Final = ("abx", "cloche", "abx.exe", "cloche.exe")


def own_command() -> tuple[str, ...]:
    """The absolute path of the `abx` that runs; where there is none, that of its interpreter and how it starts us.

    Source: seed 001, "One-Click Installation", whose program runs on Node and falls back to `node` and its script.
    """
    started = sys.argv[0]
    if os.path.basename(started) in _NAMES:
        found = os.path.abspath(started) if os.path.dirname(started) else shutil.which(started)
        if found and os.access(found, os.X_OK):
            return (os.path.abspath(found),)
    # Links stay: the interpreter of a virtual environment is one, and what it leads to knows no package of ours.
    beside = Path(os.path.abspath(sys.executable)).with_name("abx.exe" if os.name == "nt" else "abx")
    if os.access(beside, os.X_OK):
        return (str(beside),)
    return (os.path.abspath(sys.executable), "-m", "cloche_cli")
