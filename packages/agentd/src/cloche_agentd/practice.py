"""A short life of an agent in the process that agents are forked from.

Python adapts code while it runs for the first times, and notes where it found a name. Each fork would do so again, in
pages of its own; what was done before the fork, all of them have.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from typing import Final

from .agent import Agent
from .config import AgentConfig, InitProfile, KeeperHooks, Orders, User
from .init import Init
from .link import open_link
from .rehearsal import rehearse

LIVES: Final = 10
"""Python runs a function eight times before it begins to adapt it."""
_TOKEN: Final = "practice"
_LONGEST_S: Final = 2.0


def practise(folder: str) -> None:
    """Answer two requests of our own, by an init that is a fork of us. Nobody else can ask, and nothing is left.

    Args:
        folder: an empty folder, where the code runs.
    """
    link, init_link = open_link()
    child = os.fork()
    if child == 0:
        _be_init(link, init_link)
    init_link.close()
    mask, descriptors = os.umask(0o022), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        asyncio.run(asyncio.wait_for(_live(link, folder), _LONGEST_S))
    except TimeoutError:
        # Whoever forks from us waits meanwhile: no practice is better than a long one.
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, descriptors)
        os.waitpid(child, 0)


def _be_init(link: socket.socket, init_link: socket.socket) -> None:
    try:
        link.close()
        Init(init_link, InitProfile()).serve()
    finally:
        os._exit(0)


async def _live(link: socket.socket, folder: str) -> None:
    user = User("user", os.getuid(), os.getgid(), folder)
    config = AgentConfig("practice", _TOKEN, users=(user,), begin_interpreter=True)

    async def be_asked() -> Orders:
        try:
            for _ in range(2):
                await rehearse(agent.server, _TOKEN)
        finally:
            agent.end()
        return Orders("practice", _TOKEN, {}, ())

    agent = Agent(config, KeeperHooks(orders=be_asked))
    await agent.run(link, ())
