"""An environment for each client that is not in that of the tests: .cache/clients/NAME, made once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.clients.table import Client
from tests.inspector import node

FOLDER = Path(__file__).parents[2] / ".cache" / "clients"
_WITHIN_S = 900


class NotInstalled(Exception):
    """A client cannot be had on this machine; the text says why."""


def place(client: Client) -> Path:
    """Where the environment of a client is, or would be."""
    return FOLDER / client.folder


def interpreter(client: Client) -> Path:
    """The Python that has the client's library."""
    return place(client) / "bin" / "python" if client.pip else Path(sys.executable)


def install(client: Client) -> None:
    """Make the environment of a client, if it needs one and there is none of this version.

    Raises:
        NotInstalled: it could not be made.
    """
    wanted = "\n".join((*client.pip, *client.npm))
    mark = place(client) / "installed"
    if not wanted or (mark.exists() and mark.read_text(encoding="utf-8") == wanted):
        return
    place(client).mkdir(parents=True, exist_ok=True)
    if client.pip:
        uv = [sys.executable, "-m", "uv"]
        _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place(client))])
        _run([*uv, "pip", "install", "--quiet", "--python", str(interpreter(client)), *client.pip])
    if client.npm:
        _install_from_npm(client)
    mark.write_text(wanted, encoding="utf-8")


def _install_from_npm(client: Client) -> None:
    program = node()
    if program is None:
        raise NotInstalled("there is no Node.js here")
    npm = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    _run([str(program), str(npm), "install", "--prefix", str(place(client)), *quiet, *client.npm])
    if client.after_npm:
        package, script = client.after_npm
        _run([str(program), script], place(client) / "node_modules" / package)


def _run(argv: Sequence[str], folder: Path | None = None) -> None:
    program = node()
    path = os.environ.get("PATH", os.defpath)
    environ = {**os.environ, "PATH": path if program is None else f"{program.parent}{os.pathsep}{path}"}
    try:
        done = subprocess.run(
            argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(type(error).__name__) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotInstalled(lines[-1][:200])
