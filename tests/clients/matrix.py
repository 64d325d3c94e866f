"""What came of it, as the table that people read, and its place in the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.table import TRANSPORTS, Client

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "connect-an-mcp-client.md"
BEGIN, END = "<!-- clients: begin -->", "<!-- clients: end -->"


@dataclass(frozen=True)
class Row:
    """One client: what came of each transport, in words, and which of them are good."""

    client: Client
    found: Mapping[str, str]
    good: frozenset[str]

    @property
    def passed(self) -> bool:
        """Whether every transport is good; a client that is not here has passed nothing."""
        return self.good == frozenset(TRANSPORTS)

    @property
    def line(self) -> str:
        """The row as a line of the table."""
        shown = [self.client.name, self.client.version, *(self.found[name] for name in TRANSPORTS)]
        return f"| {' | '.join(cell.replace('|', '/') for cell in shown)} |"


def markdown(rows: Sequence[Row]) -> str:
    """The matrix."""
    return "\n".join(["| Client | Version | stdio | HTTP |", "| --- | --- | --- | --- |", *(row.line for row in rows)])


def write_page(rows: Sequence[Row]) -> None:
    """Replace what stands between the two marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has lost its marks")
    PAGE.write_text(f"{before}{BEGIN}\n\n{markdown(rows)}\n\n{END}{after}", encoding="utf-8")
