"""The protocol of the in-sandbox agent: its messages, its paths, the headers of its requests."""

from typing import TYPE_CHECKING

from cloche_contract._gen import agent_wire as _wire
from cloche_contract._gen.exports import agent as _exports

from ._gen.agent_wire import *  # noqa: F403 - the names of the contract

if TYPE_CHECKING:
    from ._gen.exports.agent import *  # noqa: F403 - the names of the contract

__all__: list[str] = []
__all__ += _wire.__all__
__all__ += _exports.__all__


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
