"""The JSON shapes that `--json` writes. Their keys are those of the tools' results."""

from collections.abc import Mapping
from typing import Any

from cloche_sdk import CommandResult, Execution


def command_document(result: CommandResult) -> dict[str, Any]:
    """What a command gave."""
    return {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "exit_code": result.exit_code,
        "stop_reason": result.stop_reason,
        "timed_out": result.timed_out,
        "truncated": result.truncated,
        "stdout_bytes": result.stdout_captured.total_bytes,
        "stderr_bytes": result.stderr_captured.total_bytes,
        "replaced": result.replaced,
    }


def code_document(result: Execution) -> dict[str, Any]:
    """What code gave: a command's keys, and the displays, files and state."""
    return {
        **command_document(result),
        "results": [_display(display.formats) for display in result.results],
        "error": None
        if result.error is None
        else {"name": result.error.name, "value": result.error.value, "traceback": result.error.traceback},
        "output_files": [{"name": file.name, "path": file.path, "size": file.size} for file in result.output_files],
        "state_kept": result.state_kept,
    }


def _display(formats: Mapping[str, str]) -> dict[str, Any]:
    return {"types": sorted(formats), "text": formats.get("text")}
