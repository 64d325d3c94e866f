"""The first example of a package's README: what it says to install, what it runs, what that prints."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.wheelhouse import install, run
from tests.architecture.workspace import Package, packages

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """What a reader does first."""

    requirements: Sequence[str]
    language: str
    source: str
    prints: str | None


def example_of(package: Package) -> Example:
    """The example of a README: a block with `pip install`, then one of Python or shell, then perhaps its output.

    Raises:
        LookupError: there is none.
    """
    blocks = _BLOCK.findall((package.folder / "README.md").read_text(encoding="utf-8"))
    for index, (_, first) in enumerate(blocks):
        if not first.startswith("pip install "):
            continue
        for place, (language, source) in enumerate(blocks[index + 1 :], index + 1):
            if language in ("python", "sh", "console"):
                after = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
                wanted = shlex.split(first.splitlines()[0], comments=True)[2:]
                if language == "console":
                    return Example(wanted, "sh", *_first_command(source))
                return Example(wanted, language, source, after[1] if after[0] == "text" else None)
    raise LookupError(f"{package.name}: its README has no example after its `pip install`")


def _first_command(session: str) -> tuple[str, str]:
    """What is typed first in a session that a page shows, and what that prints."""
    first, _, rest = session.removeprefix("$ ").partition("\n")
    return first, rest.partition("$ ")[0]


def run_example(package: Package, python: Path, wheelhouse: Path) -> list[str]:
    """Do what the README says, in the package's own environment; returns what is wrong with it."""
    example = example_of(package)
    versions = {one.name: one.project["version"] for one in packages()}
    pinned = [f"{name}=={versions[name.partition('[')[0]]}" for name in example.requirements]
    if pinned[:1] != [f"{package.name}=={package.project['version']}"]:
        install(python, wheelhouse, pinned)
    elif len(pinned) > 1:
        install(python, wheelhouse, pinned[1:])
    command = [str(python), "-c"] if example.language == "python" else ["/bin/sh", "-e", "-c"]
    home = wheelhouse / f"home-{package.key}"
    home.mkdir()
    variables = {"HOME": str(home), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    shown = run([*command, example.source], home, variables)
    return [] if example.prints in (None, shown) else ["its README's example prints something else"]
