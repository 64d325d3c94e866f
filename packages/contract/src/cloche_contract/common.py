"""Closed sets and small objects that several tools share."""

from typing import TYPE_CHECKING

from cloche_contract._gen.exports import common as _exports

if TYPE_CHECKING:
    from ._gen.exports.common import *  # noqa: F403 - the names of the contract

__all__: list[str] = []
__all__ += _exports.__all__


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
