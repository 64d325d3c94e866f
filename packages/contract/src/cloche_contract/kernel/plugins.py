"""Installed tool sets, providers and agents, by entry point. The one part of the kernel that looks around."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

TOOLSETS = "cloche.toolsets"
PROVIDERS = "cloche.providers"
AGENT = "cloche.agent"


class PluginMissing(LookupError):
    """Nothing of that name is installed."""


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def names(group: str) -> tuple[str, ...]:
    """Names that are installed in a group, sorted; nothing is imported."""
    return tuple(_found(group))


def load(group: str, name: str) -> Any:
    """Import what is registered under that name.

    Raises:
        PluginMissing: nothing is registered under it.
    """
    point = _found(group).get(name)
    if point is None:
        raise PluginMissing(name)
    return point.load()
