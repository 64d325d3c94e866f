"""What a tool result shows of a background task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .shown import denied_note, no_network_note
from .task_text import TaskText
from .tasks import TaskInfo, TaskReport
from .unpublished import unpublished_note

__all__ = ["shown_report", "start_note"]

# A task in a sandbox that was just made, both with their defaults, is nothing to warn of.
MARGIN_S = 30

_UNKNOWN = "Whether it started is not known: its start was not answered. Read the task to see; it is not started twice."
_TOO_MUCH = "It was ended: it printed more in all than it may. Let it write to a file in the sandbox, or print less."
_ENDS_FIRST = "The lifetime of the sandbox may be over before the timeout of the task, which would end it."


def start_note(info: TaskInfo, timeout_s: int, remaining_s: float | None) -> str | None:
    """What a client should know about a task that was just started."""
    notes = [_UNKNOWN] if info.state == "unknown" else []
    if remaining_s is not None and remaining_s + MARGIN_S < timeout_s:
        notes.append(_ENDS_FIRST)
    return " ".join(notes) or None


def shown_report(report: TaskReport, sandbox_id: str) -> dict[str, Any]:
    """The keys that get_task and cancel_task share."""
    info = report.info
    shown: dict[str, Any] = {
        "task_id": info.task_id,
        "sandbox_id": sandbox_id,
        "state": info.state,
        "exit_code": info.exit_code,
        "started_at": info.started_at,
        "finished_at": info.finished_at,
        "replaced": report.stdout.replaced or report.stderr.replaced,
    }
    if info.stop_reason is not None:
        shown["stop_reason"] = info.stop_reason
    for name, part in (("stdout", report.stdout), ("stderr", report.stderr)):
        shown[name] = part.text
        shown[f"{name}_offset"] = part.next_offset
        shown[f"{name}_size"] = part.size
        shown[f"{name}_truncated"] = part.truncated
    notes = [*_skipped("stdout", report.stdout), *_skipped("stderr", report.stderr)]
    if info.stop_reason == "output_limit":
        notes.append(_TOO_MUCH)
    if info.denied:
        notes.append(denied_note(info.denied))
    elif info.state == "failed" and (note := no_network_note(report.stdout.text, report.stderr.text)) is not None:
        notes.append(note)
    if info.unpublished is not None:
        notes.append(unpublished_note(info.unpublished))
    if notes:
        shown["note"] = " ".join(notes)
    return shown


def _skipped(name: str, part: TaskText) -> Iterator[str]:
    if part.skipped:
        yield f"{part.skipped} bytes of {name} before this part are no longer kept."
