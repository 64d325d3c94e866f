"""A TCP port of this machine's loopback address for one sandbox's agent.

The socket belongs to the network namespace that it was made in, the host's, and the keeper inherits it: the port is
reachable from the host while the sandbox has no network. It closes with its last holder, which is the keeper.
"""

import socket
from collections.abc import Generator
from contextlib import contextmanager

from pydantic import MISSING

from cloche_contract.errors import ProviderUnavailable
from cloche_contract.provider import CreateRequest

LOOPBACK = "127.0.0.1"
_BACKLOG = 1024


@contextmanager
def wanted_listener(request: CreateRequest) -> Generator[socket.socket | None]:
    """A listener to hand to the keeper, for the time of the block; None where none was asked for.

    Raises:
        ProviderUnavailable: this machine has no free port.
    """
    if request.listen is MISSING or not request.listen:
        yield None
        return
    with _bound() as listener:
        yield listener


def _bound() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((LOOPBACK, 0))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ProviderUnavailable from error
    return listener


def url(port: int) -> str:
    """The address of a port."""
    return f"http://{LOOPBACK}:{port}"
