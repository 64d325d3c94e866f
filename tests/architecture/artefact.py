"""What `abx mcp deploy` writes, started from its own requirements in a new environment, and called by a client.

On Python 3.10, the runtime that the artefact names, where this machine has one.

Source: the issue's "the deploy artefact is started from its own requirements"; checklist 201 to 205, 210.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import httpx2
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.architecture.wheelhouse import download, environment, install, run

_WITHIN_S = 120
# What the artefact's requirement brings, of ours, on a Python without the local provider.
_OURS = ("contract", "mcp-http", "mcp-stdio", "sdk")


def runtime_python() -> str:
    """A Python 3.10 that works, or this one."""
    found = next(filter(_is_310, _candidates()), None)
    return sys.executable if found is None else found


def _candidates() -> Iterator[str]:
    on_path = shutil.which("python3.10")
    yield from [on_path] if on_path else []
    # Several Pythons of one manager stand side by side.
    yield from (str(path) for path in sorted(Path(sys.base_prefix).parent.glob("3.10.*/bin/python3.10")))


def _is_310(python: str) -> bool:
    probe = [python, "-c", "import sys, ensurepip, venv; raise SystemExit(sys.version_info[:2] != (3, 10))"]
    return subprocess.run(probe, capture_output=True, timeout=60, check=False).returncode == 0


def check_artefact(abx: Path, wheels: Mapping[str, Path], wheelhouse: Path, inside: str) -> int:
    """Write the artefact, install it, start it, call it.

    Args:
        abx: the command of an environment that has base `cloche` alone.
        wheels: those of this tree.
        wheelhouse: wheels for this interpreter.
        inside: a program that imports every module of the package that it is given.

    Returns:
        The minor version of the Python that it ran on.
    """
    runtime = runtime_python()
    folder = wheelhouse / "artefact"
    run([str(abx), "mcp", "deploy", "--output-dir", str(folder)], wheelhouse, {"HOME": str(wheelhouse)})
    refused = subprocess.run([abx, "mcp", "start"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, b""), refused
    assert b"cloche[mcp]" in refused.stderr
    python = environment(wheelhouse / "venv-artefact", runtime)
    if runtime != sys.executable:
        needed = [f"{wheels['cli']}[mcp]", *(str(wheels[key]) for key in _OURS)]
        wheelhouse = wheelhouse / "artefact-wheels"
        download(needed, wheelhouse, python)
    install(python, wheelhouse, ["--requirement", str(folder / "requirements.txt")])
    for package in ("cloche_cli", "cloche_mcp_http", "cloche_mcp_stdio", "cloche_sdk"):
        run([str(python), "-I", "-c", inside, package, ""], folder)
    anyio.run(_serve_and_call, python, folder, secrets_of(folder))
    return int(run([str(python), "-c", "import sys; print(sys.version_info[1])"], folder))


def secrets_of(folder: Path) -> dict[str, str]:
    """The variables of the file beside the artefact."""
    lines = folder.with_name(f"{folder.name}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


async def _serve_and_call(python: Path, folder: Path, secrets: Mapping[str, str]) -> None:
    """Start it as its steps say, on a free port of this machine only."""
    command = [str(python.parent / "uvicorn"), "app:app", "--host", "127.0.0.1", "--port", "0"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **secrets}
    with anyio.fail_after(_WITHIN_S):
        process = await anyio.open_process(command, cwd=folder, env=environ, stderr=subprocess.STDOUT)
        try:
            assert process.stdout is not None
            said = BufferedByteReceiveStream(process.stdout)
            while (found := re.search(rb"running on (http://\S+)", await said.receive_until(b"\n", 65536))) is None:
                continue
            await call(f"{found[1].decode()}/mcp", secrets["ABX_MCP_AUTH_TOKEN"])
            process.terminate()
            async for _ in process.stdout:
                continue
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()


async def call(url: str, token: str) -> None:
    """See that a client with the token is served, and that others are refused."""
    async with httpx2.AsyncClient() as stranger:
        for headers in ({}, {"Authorization": "Bearer another"}):
            answer = await stranger.post(url, headers=headers)
            assert answer.status_code == 401, answer.status_code
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) == 15
        # Wherever the sandboxes come from, or if there are none here: an answer, never a broken connection.
        assert (await client.call_tool("list_sandboxes", {})).content
