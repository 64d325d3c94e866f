"""One request of our own, before a client has one.

Keeper and interpreter are forks: their memory is their siblings' too until they write to it, and Python writes to
whatever it looks at. The first request would pay for every page on its way. Where nobody waits yet, this one does.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from .server import Connection, Server

# No name and no value of it stays: the loop has names of its own, and the last semicolon hides the value.
_CODE: Final = "print(end='');[n.arange(3).sum() for n in [__import__('sys').modules.get('numpy')] if n];"
_BODY: Final = b'{"code":"%b"}' % _CODE.encode()
_PATIENCE_S: Final = 5.0


async def rehearse(server: Server, token: str) -> None:
    """Have the server answer one execution that does nothing. Nothing depends on how it ends."""
    head = f"POST /execute HTTP/1.1\r\nHost: local\r\nX-Access-Token: {token}\r\nConnection: close\r\n"
    request = f"{head}Content-Length: {len(_BODY)}\r\n\r\n".encode() + _BODY
    loop = asyncio.get_running_loop()
    client, accepted = socket.socketpair()
    client.setblocking(False)
    accepted.setblocking(False)
    transport, _protocol = await loop.connect_accepted_socket(lambda: Connection(server), accepted)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await loop.sock_sendall(client, request)
            while await loop.sock_recv(client, 65536):
                pass
    except (OSError, TimeoutError):
        return
    finally:
        client.close()
        transport.abort()
