"""Changes of a workspace in layers that nobody else sees: refused, or waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Unpublished", "unpublished", "unpublished_note"]

PATHS_SHOWN = 5
PATH_CHARS = 200

_WHY: Mapping[str, str] = {
    "special_file": "it holds a device",
    "too_deep": "its folders are too deep",
    "unreadable": "it holds files that their owner may not read",
    "layer_limit": "there are too many layers; squash them",
}


@dataclass(frozen=True)
class Unpublished:
    """What a run changed in the workspace and nobody else sees.

    `reason` is `pending` where it waits until code closes what it has open there, else why it was refused: then it is
    gone. `paths` are those that others changed at the same time.
    """

    reason: str
    paths: tuple[str, ...] = ()


def unpublished(told: Mapping[str, Any]) -> Unpublished | None:
    """Read what an agent says of the changes of a run; None where everybody sees them."""
    if told.get("outcome") == "pending":
        return Unpublished("pending")
    if told.get("outcome") != "rejected":
        return None
    conflicts = cast("Sequence[Mapping[str, Any]]", told.get("conflicts") or ())
    return Unpublished(str(told.get("reject_class") or "failed"), tuple(str(one["path"]) for one in conflicts))


def unpublished_note(lost: Unpublished) -> str:
    """What became of the changes, and what to do."""
    if lost.reason == "pending":
        return (
            "What the code changed in the workspace is not there for commands, tasks and files yet: it keeps something "
            "of it open. Close it, and run code again."
        )
    if lost.reason == "source_conflict":
        shown = ", ".join(path[:PATH_CHARS] for path in lost.paths[:PATHS_SHOWN])
        more = f" and {len(lost.paths) - PATHS_SHOWN} more" if len(lost.paths) > PATHS_SHOWN else ""
        return (
            "Nothing that this changed in the workspace was kept: others changed the same files meanwhile "
            f"({shown}{more}). Look at what is there now, and do it again."
        )
    why = _WHY.get(lost.reason, "it could not be written, most likely because the disk is full")
    return f"Nothing that this changed in the workspace was kept: {why}."
