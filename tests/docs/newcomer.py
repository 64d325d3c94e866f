"""The way of a newcomer, timed: from a bare machine to a tool call from the MCP Inspector, in three commands.

`nox -s newcomer` runs the commands as docs/how-to/connect-an-mcp-client.md shows them, in a home that is empty, with a
clone of what is committed here. Packages come from the indexes that this machine is set up for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.architecture.workspace import ROOT
from tests.docs.page import blocks
from tests.inspector import VERSION, node

PAGE = ROOT / "docs" / "how-to" / "connect-an-mcp-client.md"
_KEPT = (
    "PIP_",
    "NPM_CONFIG_",
    "npm_config_",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
)


def commands() -> list[str]:
    """The commands as the page shows them."""
    (block,) = [each for each in blocks(PAGE) if each.text.startswith("git clone ")]
    return block.text.splitlines()


def main() -> int:
    program = node()
    if program is None:
        raise SystemExit("The development tools are missing. Run ./bootstrap --dev first.")
    with tempfile.TemporaryDirectory(prefix="newcomer-") as scratch:
        home = Path(scratch)
        npm = program.parent.parent / "lib" / "node_modules" / "npm" / "bin"
        (home / "bin").mkdir()
        for name, target in {
            "node": f'exec {program} "$@"',
            "npx": f'exec {program} {npm / "npx-cli.js"} "$@"',
        }.items():
            (home / "bin" / name).write_text(f"#!/bin/sh\n{target}\n", encoding="utf-8")
            (home / "bin" / name).chmod(0o755)
        environ = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        environ |= {"HOME": str(home), "PATH": f"{home / 'bin'}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        environ |= {"PYTHON": os.environ.get("PYTHON", sys.executable)}
        return follow([line.replace("ADDRESS", str(ROOT)) for line in commands()], home, environ)


def follow(lines: list[str], home: Path, environ: dict[str, str]) -> int:
    """Run the commands in one shell, each with its time behind it; return the status of the first that fails."""
    script = "set -e\n" + "\n".join(f'{line}\necho "$EPOCHREALTIME" >>"$HOME/times"' for line in lines)
    began = time.time()
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=home,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    times = (home / "times").read_text().split() if (home / "times").exists() else []
    for line, end in zip(lines, map(float, times), strict=False):
        print(f"{end - began:7.1f} s  {line}")
        began = end
    if done.returncode == 0 and '"stdout": "42\\n"' not in done.stdout:
        print("The tool call did not answer 42.")
        return 1
    return done.returncode


if __name__ == "__main__":
    assert VERSION in commands()[-1]
    raise SystemExit(main())
