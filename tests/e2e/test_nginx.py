"""Two servers behind a real nginx, with the configuration that the documentation shows.

Source: decision D28; the issue, item 6; faults M14.
"""

import re
import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.architecture.workspace import ROOT
from tests.e2e.http_servers import http_server
from tests.packages.mcp_http.served import Served, modern, raw

pytestmark = pytest.mark.anyio

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
ALONE = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{shown}
}}
"""


def shown_configuration(port: int, first: str, second: str) -> str:
    """What the documentation shows, with the ports of this test."""
    page = (ROOT / "docs/how-to/serve-over-http.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```nginx\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ports = {"8080": f"127.0.0.1:{port}", "127.0.0.1:8081": first, "127.0.0.1:8082": second}
    for written, real in ports.items():
        assert written in shown
        shown = shown.replace(written, real)
    return shown


@asynccontextmanager
async def nginx(folder: Path, first: str, second: str) -> AsyncGenerator[Served]:
    """nginx on a port of its own, gone afterwards."""
    assert NGINX is not None
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = int(chosen.getsockname()[1])
    configuration = folder / "nginx.conf"
    configuration.write_text(ALONE.format(folder=folder, shown=shown_configuration(port, first, second)))
    argv = [NGINX, "-e", "stderr", "-p", str(folder), "-c", str(configuration)]
    process = await anyio.open_process(argv, stdin=subprocess.DEVNULL, stdout=None, stderr=None)
    try:
        with anyio.fail_after(20):
            while not await answers(port):
                assert process.returncode is None, "nginx did not start"
                await anyio.sleep(0.05)
        yield Served(port, None)
    finally:
        if process.returncode is None:
            process.terminate()
        with anyio.CancelScope(shield=True):
            await process.wait()
            await process.aclose()


async def answers(port: int) -> bool:
    try:
        async with await anyio.connect_tcp("127.0.0.1", port):
            return True
    except OSError:
        return False


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
async def test_sessions_stay_with_their_server_behind_nginx(environ: dict[str, str], tmp_path: Path) -> None:
    """Every id leads back to the server that gave it, and both get clients."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    async with (
        http_server(environ, "--server-id", "a") as first,
        http_server(environ, "--server-id", "b") as second,
        nginx(folder, first.origin.removeprefix("http://"), second.origin.removeprefix("http://")) as proxy,
    ):
        seen: set[str] = set()
        for _ in range(4):
            async with raw(proxy) as client:
                assert client.session_id is not None
                seen.add(client.session_id[0])
                for _ in range(3):
                    await client.value("list_sandboxes")
                assert (await client.bye()).status_code == 200
                assert (await client.post(client.calling("list_sandboxes"))).status_code == 404
        assert seen == {"a", "b"}
        async with raw(proxy) as maker, modern(proxy) as without:
            made = await maker.value("create_sandbox")
            for _ in range(2):  # nginx takes turns: once each server is asked
                shown = await without.call("get_sandbox", {"sandbox_id": made["sandbox_id"]})
                assert shown["isError"] is False or environ["ABX_PROVIDER"] != "local"
