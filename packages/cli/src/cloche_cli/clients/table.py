"""The table of clients: one JSON document that says how each keeps its servers."""

import json
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

Scope = Literal["user", "project"]


@dataclass(frozen=True)
class Client:
    """One client.

    Args:
        files: for each scope a path, several of which the first that exists counts, or such by platform.
        path: the keys above our entry.
        stdio, http: the entry, with words that begin with $ for what goes in; http is None where the client takes
            no remote server from its file, and `no_http` then says why.
        secrets: the scopes whose file may hold a key or token as it is.
        reference: how the file names the variable with the token; None where it cannot, empty where it needs no words.
        add, add_http: for each scope the client's own command that does the same.
        link: an address that makes the client ask its user.
    """

    id: str
    title: str
    format: str
    files: Mapping[Scope, Any]
    path: tuple[str, ...]
    stdio: Mapping[str, Any]
    http: Mapping[str, Any] | None
    no_http: str
    secrets: tuple[Scope, ...]
    reference: str | None
    add: Mapping[Scope, list[str]]
    add_http: Mapping[Scope, list[str]]
    link: str | None
    sources: tuple[str, ...]

    @property
    def default_scope(self) -> Scope:
        """The first scope of the table."""
        return next(iter(self.files))


@cache
def clients() -> Mapping[str, Client]:
    """Every client, in the order of the table."""
    data = pkgutil.get_data("cloche_cli.clients", "clients.json")
    assert data is not None
    return {name: _client(name, row) for name, row in cast("dict[str, Any]", json.loads(data)).items()}


def _client(name: str, row: Mapping[str, Any]) -> Client:
    return Client(
        id=name,
        title=row["title"],
        format=row["format"],
        files=row["files"],
        path=tuple(row["path"]),
        stdio=row["stdio"],
        http=row.get("http"),
        no_http=row.get("no_http", ""),
        secrets=tuple(row.get("secrets", ())),
        reference=row.get("reference"),
        add=row.get("add", {}),
        add_http=row.get("add_http", {}),
        link=row.get("link"),
        sources=tuple(row["sources"]),
    )
