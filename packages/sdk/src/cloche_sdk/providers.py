"""Which provider makes or holds a sandbox, and how it is opened.

A reference is a plain id, or `provider:id`. Order: the `provider` argument, the prefix,
ABX_PROVIDER, `cloud` where an API key is configured, `local`.

Source: decisions D19, D22; systems facts 2.5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import anyio

from cloche_contract.errors import InvalidArgument, ProviderMismatch, ProviderUnknown, SandboxLost
from cloche_contract.kernel import plugins
from cloche_contract.kernel.doors import Clock, IdSource, RandomIds, SystemClock
from cloche_contract.provider import ProviderOptions, SandboxProvider

from .config import Settings, load_settings

__all__ = ["Doors", "ProviderPool", "Reference"]

_PROVIDER_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

OpenProvider = Callable[[ProviderOptions], AbstractAsyncContextManager[SandboxProvider]]


@dataclass(frozen=True)
class Reference:
    """One sandbox, however it was written: provider and plain id."""

    provider: str
    sandbox_id: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.sandbox_id}"


def _installed() -> frozenset[str]:
    return frozenset(plugins.names(plugins.PROVIDERS))


def _load(name: str) -> OpenProvider:
    return cast("OpenProvider", plugins.load(plugins.PROVIDERS, name))


@dataclass(frozen=True)
class Doors:
    """What the SDK takes from its surroundings: settings, environment, clock, ids, installed providers."""

    settings: Settings = field(default_factory=load_settings)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)
    providers: Callable[[], frozenset[str]] = field(default=_installed)
    load: Callable[[str], OpenProvider] = field(default=_load)

    def override(self, **arguments: str | None) -> Doors:
        """The same doors with arguments on top of the settings."""
        settings = self.settings.override(**arguments)
        return self if settings is self.settings else replace(self, settings=settings)

    @cached_property
    def default_provider(self) -> str:
        """The provider of everything that names none."""
        configured = self.settings.text("provider")
        if configured is not None:
            return configured
        return "cloud" if self.settings.text("sandbox_api_key") is not None else "local"

    def provider(self, explicit: str | None = None) -> str:
        """The provider to use.

        Raises:
            ProviderUnknown: it is not installed.
        """
        name = explicit or self.default_provider
        installed = self.providers()
        if name not in installed:
            raise ProviderUnknown(available=sorted(installed))
        return name

    def reference(self, text: str, provider: str | None = None) -> Reference:
        """Take a plain or qualified id apart.

        Raises:
            InvalidArgument: nothing is left of the id.
            ProviderUnknown: the prefix or the argument names no installed provider.
            ProviderMismatch: prefix and argument name different providers.
        """
        prefix, colon, rest = text.partition(":")
        if not colon:
            prefix, rest = "", text
        elif not _PROVIDER_ID.fullmatch(prefix):
            raise ProviderUnknown(available=sorted(self.providers()))
        if not rest.strip():
            raise InvalidArgument(field="sandbox_id", rule="minLength", limit=1)
        if prefix and provider and prefix != provider:
            self.provider(prefix)
            raise ProviderMismatch
        return Reference(self.provider(prefix or provider), rest)


class ProviderPool:
    """Opens each provider once, at its first use, and closes them all together."""

    def __init__(self, doors: Doors) -> None:
        self.doors = doors
        self._open: dict[str, SandboxProvider] = {}
        self._stack = AsyncExitStack()
        self._opening = anyio.Lock()
        self._closed = False

    async def get(self, name: str) -> SandboxProvider:
        """The opened provider.

        Raises:
            ProviderUnknown: it is not installed.
            ConfigurationInvalid: a setting of it is wrong.
            SandboxLost: the pool is closed; what was opened now would stay open.
        """
        provider = self._open.get(name)
        if provider is not None:
            return provider
        async with self._opening:
            if self._closed:
                raise SandboxLost
            if name not in self._open:
                opener = self.doors.load(self.doors.provider(name))
                general = name in (self.doors.default_provider, "cloud")
                options = ProviderOptions(
                    settings=self.doors.settings.for_provider(name, general=general),
                    environ=self.doors.environ,
                    clock=self.doors.clock,
                    ids=self.doors.ids,
                )
                self._open[name] = await self._stack.enter_async_context(opener(options))
            return self._open[name]

    async def aclose(self) -> None:
        """Close what was opened. The sandboxes live on."""
        self._closed = True
        self._open.clear()
        async with self._opening:  # one that is being opened now belongs to the stack first
            self._open.clear()
            await self._stack.aclose()
