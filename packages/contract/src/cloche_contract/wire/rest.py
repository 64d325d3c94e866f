"""One route of a REST API, and what the generated client of a platform needs from whoever sends its requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, cast
from urllib.parse import quote

T = TypeVar("T")

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Route:
    """A method on a path template; `statuses` says what an error status means, by catalogue code."""

    name: str
    method: str
    path: str
    query: tuple[str, ...]
    success: tuple[int, ...]
    statuses: Mapping[int, str] = field(default_factory=dict[int, str])

    def url_path(self, values: Mapping[str, str]) -> str:
        """The path with its values in place, percent-encoded as one segment each."""
        return self.path.format_map({name: quote(value, safe="") for name, value in values.items()})


@dataclass(frozen=True)
class Answer:
    """What a platform answered, its body decoded. None where it has no body."""

    value: object = field(repr=False)
    next_token: str | None = None

    def entries(self) -> Sequence[object]:
        """The entries of a list; some platforms wrap it in an object."""
        found = self.value
        if isinstance(found, dict):
            wrapped = cast("Mapping[str, object]", found)
            found = wrapped.get("data", wrapped.get("sandboxes"))
        return cast("Sequence[object]", found) if isinstance(found, list) else ()


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list, and what names the next."""

    entries: Sequence[T]
    next_token: str | None


class PlatformTransport(Protocol):
    """Sends requests to one platform. Failures arrive as catalogue errors."""

    async def send(
        self,
        route: Route,
        *,
        values: Mapping[str, str] = _NONE,
        query: Mapping[str, str] = _NONE,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] = _NONE,
    ) -> Answer:
        """Send one request and return what answers it."""
        ...
