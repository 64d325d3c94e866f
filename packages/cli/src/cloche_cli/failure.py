"""How a failure is told: one line of cause, one line of what to do, or one JSON document.

All text is static: it comes from the error catalogue or from this package, never from a
value that somebody typed or a provider sent.
"""

import json
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from cloche_cli.exit_status import NOT_FOUND, OTHER, USAGE
from cloche_cli.invocation import Invocation
from cloche_cli.usage import explain

if TYPE_CHECKING:
    from cloche_contract.errors import ClocheError
    from cloche_contract.kernel.failure import DetailValue

# The catalogue speaks to a model that has tools; a person at a terminal has commands.
_IN_TEXT: Final = frozenset({"field", "rule", "cause"})
_FIXES: Final = {
    "sandbox_not_found": "Run `abx sandbox list` to see the sandboxes that are alive.",
    "sandbox_expired": "Run `abx sandbox create`, with a longer --timeout if it ended too early.",
    "sandbox_lost": "Run `abx sandbox create` for a new one.",
}


def report_usage(error: click.UsageError, invocation: Invocation) -> int:
    """Tell about wrong words on the command line; status 2, or 4 for a file that is not there."""
    failure = explain(error)
    document = {
        "error": failure.cause,
        "code": "invalid_argument",
        "category": "invalid_input",
        "suggestion": failure.fix,
        "details": {"field": failure.field, "rule": failure.rule},
    }
    _tell(document, failure.cause, failure.fix, as_json=invocation.json or invocation.json_seen)
    return NOT_FOUND if failure.rule == "not_found" else USAGE


def report_known(error: Exception, invocation: Invocation) -> int | None:
    """Tell about an error of the catalogue; None when it is not one."""
    from cloche_contract.errors import ClocheError

    if not isinstance(error, ClocheError):
        return None
    from cloche_contract.kernel.failure import envelope

    fix = _FIXES.get(error.code, error.hint)
    document = {**envelope("sandbox", error), "suggestion": fix}
    _tell(document, _sentence(error), fix, as_json=invocation.json or invocation.json_seen)
    if invocation.verbose:
        traceback.print_exception(error)
    return USAGE if error.code == "invalid_argument" else error.exit_code


def report_internal(error: Exception, invocation: Invocation) -> int:
    """Tell about a defect of ours; status 1."""
    cause = "abx met an internal error."
    fix = "Run the command again as `abx -v …` and report the traceback."
    document = {"error": cause, "code": "internal_error", "category": "internal", "suggestion": fix}
    _tell(document, cause, fix, as_json=invocation.json or invocation.json_seen)
    if invocation.verbose:
        traceback.print_exception(error)
    return OTHER


def _sentence(error: "ClocheError") -> str:
    """The error's own text, and the details that it does not hold already."""
    facts = [f"{name}: {_flat(value)}" for name, value in error.details.items() if name not in _IN_TEXT]
    return f"{error.text} ({', '.join(facts)})" if facts else error.text


def _flat(value: "DetailValue") -> str:
    return str(value) if isinstance(value, str | int) or value is None else " ".join(value)


def _tell(document: Mapping[str, Any], cause: str, fix: str, *, as_json: bool) -> None:
    text = json.dumps(document, ensure_ascii=False) if as_json else f"error: {cause}\nfix: {fix}"
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
