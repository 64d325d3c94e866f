"""The agent inside a Cloche sandbox. Standard library only.

Importing this package is cheap and works on every platform; the entry points load the rest (Linux only).
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Final

from .limits import AGENT_VERSION, PROTOCOL_VERSION

if TYPE_CHECKING:
    from .agent import run_keeper
    from .config import AgentConfig, InitProfile, KeeperHooks, User
    from .init import run_init
    from .link import open_link

__all__ = [
    "AgentConfig",
    "InitProfile",
    "KeeperHooks",
    "User",
    "describe",
    "open_link",
    "preload",
    "run_init",
    "run_keeper",
]

_HOMES: Final = {
    "AgentConfig": "config",
    "InitProfile": "config",
    "KeeperHooks": "config",
    "User": "config",
    "open_link": "link",
    "run_init": "init",
    "run_keeper": "agent",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def preload() -> None:
    """Import every module of the agent. Call it before the root is switched: nothing is imported after it."""
    for name in ("agent", "init", "plain", "practice"):
        importlib.import_module(f".{name}", __name__)


def describe() -> dict[str, str]:
    """Return the folder to deliver and the versions that it speaks (entry point group `cloche.agent`)."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return {"folder": folder, "version": AGENT_VERSION, "protocol": PROTOCOL_VERSION}
