"""Which tools of a set a server offers, and its texts, which then mention no others."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from cloche_contract.kernel.registry import PublishedSet

_CLAUSE = re.compile(r"(?<=[.;]) ")
_NO_ADVICE = "Check the arguments, or ask the operator of this server: a tool that could help is not enabled."
_TEXTS = frozenset({"description", "title", "suggestion", "note", "error"})


class UnusableFilter(ValueError):
    """A filter that names a tool that the set does not have, or that leaves none."""


@dataclass(frozen=True)
class ToolFilter:
    """What an operator allows. `exclude` wins over `only`, and `read_only` over both."""

    only: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    read_only: bool = False

    def apply(self, published: PublishedSet) -> "EnabledTools":
        """The tools that are left.

        Raises:
            UnusableFilter: its text says what can be used instead.
        """
        if not set(self.only or ()) | set(self.exclude) <= set(published.tool_names):
            raise UnusableFilter(
                f"names a tool that this set does not have; it has: {', '.join(published.tool_names)}."
            )
        wanted = set(published.tool_names if self.only is None else self.only) - set(self.exclude)
        if self.read_only:
            wanted &= {tool["name"] for tool in published.tools if tool["annotations"]["readOnlyHint"]}
        if not wanted:
            raise UnusableFilter("leaves no tool to serve.")
        return EnabledTools(published, wanted)


class EnabledTools:
    """The enabled tools of a set, as their server publishes them."""

    def __init__(self, published: PublishedSet, names: Iterable[str]) -> None:
        enabled = frozenset(names)
        disabled = [name for name in published.tool_names if name not in enabled]
        self._disabled = re.compile(rf"\b({'|'.join(disabled)})\b") if disabled else None
        kept = [tool for tool in published.tools if tool["name"] in enabled]
        self.tools: Mapping[str, Mapping[str, Any]] = {str(tool["name"]): self.without_others(tool) for tool in kept}
        parts = [part["text"] for part in published.instructions if enabled.issuperset(part["tools"])]
        self.instructions = self.text(" ".join(parts))

    def text(self, text: str) -> str:
        """The text without the clauses that mention a tool that is not enabled."""
        if self._disabled is None or not self._disabled.search(text):
            return text
        kept = " ".join(clause for clause in _CLAUSE.split(text) if not self._disabled.search(clause))
        return kept[:1].upper() + kept[1:].removesuffix(";") + ("." if kept.endswith(";") else "")

    def _text(self, key: str, text: str) -> str:
        return self.text(text) or (_NO_ADVICE if key == "suggestion" else "")

    def without_others(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """A copy of an object whose texts mention enabled tools only."""
        return value if self._disabled is None else cast("Mapping[str, Any]", self._copy(value))

    def _copy(self, value: Any) -> Any:
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            return {
                key: self._text(key, each) if key in _TEXTS and isinstance(each, str) else self._copy(each)
                for key, each in found.items()
            }
        return [self._copy(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
