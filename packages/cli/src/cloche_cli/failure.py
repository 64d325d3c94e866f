"""How a failure is told: one line of cause, one line of what to do, or one JSON document.

All text is static: it comes from the error catalogue or from this package, never from a
value that somebody typed or a provider sent.
"""

import json
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final

import click

from cloche_cli.exit_status import OTHER, USAGE
from cloche_cli.invocation import Invocation
from cloche_cli.usage import explain

# The catalogue speaks to a model that has tools; a person at a terminal has commands.
_FIXES: Final = {
    "sandbox_not_found": "Run `abx sandbox list` to see the sandboxes that are alive.",
    "sandbox_expired": "Run `abx sandbox create`, with a longer --timeout if it ended too early.",
    "sandbox_lost": "Run `abx sandbox create` for a new one.",
    "backend_unavailable": "Run `abx doctor` to see what is missing and how to get it.",
}


def report_usage(error: click.UsageError, invocation: Invocation) -> int:
    """Tell about wrong words on the command line; status 2."""
    failure = explain(error)
    document = {
        "error": failure.cause,
        "code": "invalid_argument",
        "category": "invalid_input",
        "suggestion": failure.fix,
        "details": {"field": failure.field, "rule": failure.rule},
    }
    _tell(document, failure.cause, failure.fix, as_json=invocation.json or invocation.json_seen)
    return USAGE


def report_known(error: Exception, invocation: Invocation) -> int | None:
    """Tell about an error of the catalogue; None when it is not one."""
    from cloche_contract.errors import ClocheError

    if not isinstance(error, ClocheError):
        return None
    from cloche_contract.kernel.failure import envelope

    document = dict(envelope("sandbox", error))
    fix = _FIXES.get(str(document["code"]), str(document.get("suggestion", "")))
    document["suggestion"] = fix
    _tell(document, _sentence(document), fix, as_json=invocation.json or invocation.json_seen)
    if invocation.verbose:
        traceback.print_exception(error)
    return for_category(str(document["category"]))


def report_internal(error: Exception, invocation: Invocation) -> int:
    """Tell about a defect of ours; status 1."""
    cause = "abx met an internal error."
    fix = "Run the command again as `abx -v …` and report the traceback."
    document = {"error": cause, "code": "internal_error", "category": "internal", "suggestion": fix}
    _tell(document, cause, fix, as_json=invocation.json or invocation.json_seen)
    if invocation.verbose:
        traceback.print_exception(error)
    return OTHER


def _sentence(document: Mapping[str, Any]) -> str:
    details = document.get("details") or {}
    facts = ", ".join(f"{name}: {_flat(value)}" for name, value in details.items())
    return f"{document['error']} ({facts})" if facts else str(document["error"])


def _flat(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)


def _tell(document: Mapping[str, Any], cause: str, fix: str, *, as_json: bool) -> None:
    if as_json:
        text = json.dumps(document, ensure_ascii=False)
    else:
        text = f"error: {cause}" + (f"\nfix: {fix}" if fix else "")
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
