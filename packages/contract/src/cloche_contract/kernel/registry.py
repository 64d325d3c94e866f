"""Published tool sets: JSON data that needs no model to be read."""

import json
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from cloche_contract.kernel.lazy import module_attribute


@dataclass(frozen=True)
class Entry:
    """Where the models of one tool are."""

    module: str
    input: str
    output: str


@dataclass(frozen=True)
class PublishedSet:
    """A tool set as its server publishes it; `tools` is in contract order."""

    name: str
    title: str
    description: str
    server_name: str
    server_title: str
    instructions: tuple[Mapping[str, Any], ...]
    contract_version: str
    envelope: str
    error_shape: str
    tools: tuple[Mapping[str, Any], ...]
    checks: Mapping[str, Mapping[str, Any]]
    meta: Mapping[str, Mapping[str, Any]]

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(tool["name"] for tool in self.tools)

    def tool(self, name: str) -> Mapping[str, Any] | None:
        """The published entry of one tool, or None."""
        return next((tool for tool in self.tools if tool["name"] == name), None)


class UnknownTool(LookupError):
    """No tool of that name is in the set. A protocol error, not a result."""


class UnknownToolSet(LookupError):
    """The contract has no tool set of that name."""


@cache
def published_set(toolset: str) -> PublishedSet:
    """Return the published form of a tool set.

    Raises:
        UnknownToolSet: the contract has none of that name.
    """
    try:
        raw = pkgutil.get_data("cloche_contract._gen", f"data/tools.{toolset}.json") if toolset.isidentifier() else None
    except FileNotFoundError:
        raw = None
    if raw is None:
        raise UnknownToolSet(toolset)
    data = cast("dict[str, Any]", json.loads(raw))
    return PublishedSet(
        name=data["set"],
        title=data["title"],
        description=data["description"],
        server_name=data["server_name"],
        server_title=data["server_title"],
        instructions=tuple(data["instructions"]),
        contract_version=data["contract_version"],
        envelope=data["envelope"],
        error_shape=data["error_shape"],
        tools=tuple(data["tools"]),
        checks=data["checks"],
        meta=data["meta"],
    )


@cache
def models(toolset: str, tool: str) -> tuple[Any, Any]:
    """Import the input and output model of a tool; this is what makes its first call slower than the others.

    Raises:
        UnknownTool: the set has no such tool.
    """
    from cloche_contract._gen.registry import DISPATCH

    entry = DISPATCH.get(toolset, {}).get(tool)
    if entry is None:
        raise UnknownTool(tool)
    return module_attribute(entry.module, entry.input), module_attribute(entry.module, entry.output)


def warm(toolset: str) -> None:
    """Import everything that the first calls of a set would import."""
    from cloche_contract.kernel import validate

    for name in published_set(toolset).tool_names:
        models(toolset, name)
        validate.prepare(toolset, name)
