"""What a sandbox is: its record, its metadata, its states, and `disclose`, the only way from one to the other."""

from typing import TYPE_CHECKING

from cloche_contract._gen.disclosure import DISCLOSURE, Audience, disclose
from cloche_contract._gen.exports import lifecycle as _exports

if TYPE_CHECKING:
    from ._gen.exports.lifecycle import *  # noqa: F403 - the names of the contract

__all__ = ["DISCLOSURE", "Audience", "disclose"]
__all__ += _exports.__all__


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
