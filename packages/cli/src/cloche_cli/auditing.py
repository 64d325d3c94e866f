"""`abx audit`: the newest lines of the audit file."""

import os
from collections.abc import Mapping
from typing import Any

from cloche_cli.escaped import escaped
from cloche_cli.exit_status import OK, OTHER
from cloche_cli.invocation import current
from cloche_sdk import load_settings
from cloche_sdk.audit import audit_path, read_lines

_COLUMNS = ("TIME", "WHO", "TOOL", "SANDBOX", "OUTCOME", "MS")


def show_audit(sandbox: str | None, limit: int) -> int:
    """Show which calls were made; status 1 where no audit file is kept."""
    invocation = current()
    found = audit_path(load_settings(), os.environ)
    if found is None:
        invocation.note("error: No audit file is kept: ABX_AUDIT_FILE is off.")
        invocation.note("fix: Unset it, or name a file.")
        if invocation.json:
            invocation.emit({"file": None, "calls": []})
        return OTHER
    path, _required = found
    lines = [line for line in read_lines(path) if sandbox is None or _is_about(line, sandbox)][-limit:]
    if invocation.json:
        invocation.emit({"file": path, "calls": lines})
        return OK
    from cloche_cli.tables import print_table

    print_table(_COLUMNS, [_row(line) for line in lines], empty="No call is recorded.")
    return OK


def _is_about(line: Mapping[str, Any], sandbox: str) -> bool:
    """The id as the call had it, plain or with its provider."""
    named = str(line.get("sandbox"))
    return named == sandbox or named.rpartition(":")[2] == sandbox.rpartition(":")[2]


def _row(line: Mapping[str, Any]) -> tuple[str, ...]:
    outcome = line.get("error") or line.get("outcome")
    cells = (line.get("time"), line.get("who"), line.get("tool"), line.get("sandbox"), outcome, line.get("ms"))
    return tuple("-" if cell is None else escaped(str(cell)) for cell in cells)
