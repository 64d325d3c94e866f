"""`nox -s clients`: every client of the table against `abx mcp start`, over stdio and HTTP, and a matrix of it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from tests.clients.ask import Failed, ask
from tests.clients.environment import NotInstalled, install
from tests.clients.matrix import Row, markdown, write_page
from tests.clients.table import CLIENTS, TRANSPORTS, Client, Target
from tests.e2e.http_servers import http_server
from tests.e2e.servers import SERVER
from tests.packages.mcp_stdio.raw_client import clean_environ

TOKEN = "correct-horse-battery"


async def fill_row(client: Client, targets: dict[str, Target]) -> Row:
    """Ask a client over every transport. What could not be installed is told as that."""
    try:
        await anyio.to_thread.run_sync(install, client)
    except NotInstalled as reason:
        return Row(client, dict.fromkeys(TRANSPORTS, f"not installed here: {reason}"), frozenset())
    found: dict[str, str] = {}
    good: set[str] = set()
    for name in TRANSPORTS:
        with tempfile.TemporaryDirectory(prefix="cloche-client-") as home:
            try:
                found[name] = await ask(client, targets[name], Path(home))
                good.add(name)
            except Failed as reason:
                found[name] = f"FAILED: {reason}"
    return Row(client, found, frozenset(good))


async def fill(clients: Sequence[Client]) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="cloche-clients-") as folder:
        environ = clean_environ(HOME=folder, ABX_AUDIT_FILE="off")
        async with http_server({**environ, "ABX_MCP_AUTH_TOKEN": TOKEN}, within_s=3600) as server:
            targets = {"stdio": Target(command=SERVER, environ=environ), "http": Target(url=server.url, token=TOKEN)}
            for client in clients:
                rows.append(await fill_row(client, targets))
                sys.stdout.write(f"{rows[-1].line}\n")
                sys.stdout.flush()
    return rows


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="clients", description=__doc__)
    parser.add_argument("--only", action="append", default=[], choices=[one.name for one in CLIENTS])
    parser.add_argument("--docs", action="store_true", help="put the matrix into docs/how-to/connect-an-mcp-client.md")
    options = parser.parse_args(arguments)
    rows = anyio.run(fill, [one for one in CLIENTS if not options.only or one.name in options.only])
    sys.stdout.write(f"\n{markdown(rows)}\n")
    if options.docs:
        write_page(rows)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
