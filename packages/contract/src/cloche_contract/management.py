"""The management tools: what they take, what they return, and the Protocol that a tool set implements.

Names are generated; a model is imported when it is first used.
"""

from typing import TYPE_CHECKING

from cloche_contract._gen.exports import management as _exports

if TYPE_CHECKING:
    from ._gen.exports.management import *  # noqa: F403 - the names of the contract

__all__: list[str] = []
__all__ += _exports.__all__


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
