"""The provider interface: the Protocol, what its operations take and return, and what it is opened with."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from cloche_contract._gen.exports import provider as _exports
from cloche_contract._gen.provider import SandboxProvider
from cloche_contract.kernel.toolset import ProviderOptions

if TYPE_CHECKING:
    from ._gen.exports.provider import *  # noqa: F403 - the names of the contract


class ProviderFactory(Protocol):
    """The entry point of group `cloche.providers`."""

    def __call__(self, options: ProviderOptions) -> AbstractAsyncContextManager[SandboxProvider]:
        """Open the provider."""
        ...


__all__ = ["ProviderFactory", "ProviderOptions", "SandboxProvider"]
__all__ += _exports.__all__


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
