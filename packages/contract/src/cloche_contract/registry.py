"""Published tool sets as data, in contract order; loading them imports no model."""

from cloche_contract._gen.registry import CONTRACT_VERSION
from cloche_contract.kernel.enabled import EnabledTools, ToolFilter, UnusableFilter
from cloche_contract.kernel.registry import PublishedSet, UnknownTool, UnknownToolSet, published_set, warm

__all__ = [
    "CONTRACT_VERSION",
    "EnabledTools",
    "PublishedSet",
    "ToolFilter",
    "UnknownTool",
    "UnknownToolSet",
    "UnusableFilter",
    "published_set",
    "warm",
]
