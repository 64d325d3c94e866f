"""What a tool result shows of an execution: bounded, typed, and honest about what is missing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cloche_contract.common import CodeError, OutputFile, ResultItem
from cloche_contract.kernel.toolset import ToolCall
from cloche_contract.sandbox import RunCodeInput

from .code import CodeRequest
from .results import CommandResult, Denial, Execution
from .unpublished import unpublished_note

__all__ = ["code_request", "denied_note", "no_network_note", "shown_command", "shown_execution"]

RESULT_TEXT_CHARS = 30_000
ERROR_CHARS = 10_000
RESULTS_SHOWN = 1_000
FILES_SHOWN = 1_000
DENIALS_SHOWN = 8
# What the serving core attaches to a result.
PICTURES_SHOWN = 4
PICTURE_BYTES = 1_048_576

_IMAGES = {"png": "image/png", "jpeg": "image/jpeg"}
_BINARY = frozenset({*_IMAGES, "pdf"})
_TEXTUAL = ("text", "markdown", "json", "latex", "html", "svg", "javascript", "data", "chart")
# One static sentence each: a note never names a tool that may not be enabled.
_CUT = "Output was cut in the middle: write it to a file in the sandbox and read parts of it."
_TIMED_OUT = "It was stopped at its timeout; the output so far is kept."
_STATE_LOST = "The interpreter was restarted: its variables are gone."
_RESTARTED = "The interpreter had died since the last call: this call began in a fresh one."
_TOO_MUCH = "It was ended: it printed more in all than it may. Let it write to a file in the sandbox, or print less."
_POLICY = "The kernel ended it for a system call that no sandbox may make."
_SANDBOX_LOST = "The sandbox ended while this ran: its files and state are gone."
_HOW_TO_ALLOW = "abx sandbox network ID --allow RULE, or ABX_LOCAL_EGRESS before the sandbox is made"
_ASKED = "It seems to have waited for input, and there is none: pass the answer as an argument or by a pipe."
# The last words of a program that wants an answer, or the complaint of one that got none.
_PROMPT = re.compile(r"(?:[?:>]|\[[yY]/[nN]\]|\([yY](?:es)?/[nN]o?\))[ \t]*\Z|\bEOF(?:Error\b| when reading a line\b)")
_PROMPT_CHARS = 500
_NO_NETWORK = (
    "It looked for a host in vain. A sandbox reaches the network only where its operator opened it before it was made "
    "(for local sandboxes ABX_LOCAL_EGRESS lists what); trying again does not help."
)
# How C libraries, curl, Python, Java and node say that there is no name server and no route.
_UNREACHED = re.compile(
    r"[Cc]ould ?n[o']t resolve host|[Nn]ame resolution|Name or service not known|[Nn]etwork is unreachable"
    r"|UnknownHostException|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b"
)
_UNREACHED_CHARS = 4_000
_RESULTS_CUT = "Some displayed results were left out."


def shown_command(result: CommandResult) -> dict[str, Any]:
    """The keys that `run_command` and `run_code` share."""
    stdout = result.stdout_captured.clipped()
    stderr = result.stderr_captured.clipped()
    truncated = stdout.truncated or stderr.truncated or result.truncated
    shown: dict[str, Any] = {
        "stdout": stdout.text,
        "stderr": stderr.text,
        "exit_code": result.exit_code,
        "stop_reason": result.stop_reason,
        "timed_out": result.timed_out,
        "truncated": truncated,
        "stdout_bytes": stdout.total_bytes,
        "stderr_bytes": stderr.total_bytes,
        "replaced": result.replaced,
    }
    notes = [*_notes(result, truncated)]
    if notes:
        shown["note"] = " ".join(notes)
    return shown


def code_request(request: RunCodeInput) -> CodeRequest:
    """What a tool asks for: no more pictures and tables than its result shows; the rest become output files.

    Source: decision D7.
    """
    return CodeRequest(
        request.code,
        request.language,
        timeout_s=request.timeout,
        clean=request.clean,
        max_results=PICTURES_SHOWN,
        max_result_bytes=PICTURE_BYTES,
    )


def shown_execution(execution: Execution, call: ToolCall) -> dict[str, Any]:
    """The keys of `run_code`; images are attached to the call."""
    shown = shown_command(execution)
    shown["output_files"] = [
        OutputFile(name=file.name, path=file.path, size=file.size) for file in execution.output_files[:FILES_SHOWN]
    ]
    shown["results"] = [*_items(execution, call)][:RESULTS_SHOWN]
    shown["state_kept"] = execution.state_kept
    if execution.error is not None:
        error = execution.error
        shown["error"] = CodeError(name=error.name, value=_cut(error.value), traceback=_cut(error.traceback))
    return shown


def _notes(result: CommandResult, truncated: bool) -> Iterator[str]:
    if result.stop_reason == "output_limit":
        yield _TOO_MUCH
    elif truncated:
        yield _CUT
    if result.stop_reason == "policy":
        yield _POLICY
    if result.timed_out:
        yield _TIMED_OUT
    if _asked(result):
        yield _ASKED
    if result.denied:
        yield denied_note(result.denied)
    elif result.exit_code != 0 and (note := no_network_note(*_ends(result))) is not None:
        yield note
    if result.unpublished is not None:
        yield unpublished_note(result.unpublished)
    if result.stop_reason == "sandbox_lost":
        yield _SANDBOX_LOST
    elif isinstance(result, Execution):
        if result.restarted_because is not None:
            yield _RESTARTED
        if result.results_left_out:
            yield _RESULTS_CUT
        if result.stop_reason != "exit" and not result.state_kept:
            yield _STATE_LOST


def _asked(result: CommandResult) -> bool:
    """Whether it failed, or ran out of time, with a question as its last words."""
    if result.exit_code == 0 or result.stop_reason not in ("exit", "timeout"):
        return False
    if isinstance(result, Execution) and result.error is not None and result.error.name == "EOFError":
        return True
    ends = (captured.tail or captured.head for captured in (result.stdout_captured, result.stderr_captured))
    return any(_PROMPT.search(end[-_PROMPT_CHARS:]) is not None for end in ends)


def _ends(result: CommandResult) -> Iterator[str]:
    """The last words of what failed."""
    for captured in (result.stdout_captured, result.stderr_captured):
        yield captured.tail or captured.head
    if isinstance(result, Execution) and result.error is not None:
        yield result.error.value


def no_network_note(*texts: str) -> str | None:
    """What to know where the last words of something that failed say that it found no host."""
    found = any(_UNREACHED.search(text[-_UNREACHED_CHARS:]) is not None for text in texts)
    return _NO_NETWORK if found else None


def denied_note(denied: Sequence[Denial]) -> str:
    """What the network allowlist denied, and what the operator can do. Hosts are bounded and checked by the agent."""
    shown = denied[:DENIALS_SHOWN]
    targets = ", ".join(entry.target for entry in shown)
    rules = ", ".join(dict.fromkeys(entry.rule or "a rule for its address" for entry in shown))
    more = f" and {len(denied) - len(shown)} more" if len(denied) > len(shown) else ""
    return f"The network allowlist denied {targets}{more}. Rules for the operator to add: {rules} ({_HOW_TO_ALLOW})."


def _items(execution: Execution, call: ToolCall) -> Iterator[ResultItem]:
    room = RESULT_TEXT_CHARS
    for result in execution.results:
        for kind in _TEXTUAL:
            text = result.formats.get(kind)
            if text is None:
                continue
            shown = text[:room]
            room -= len(shown)
            found: dict[str, Any] = {"type": kind, "size": len(text.encode("utf-8", "replace"))}
            yield ResultItem(**found, text=shown) if shown or not text else ResultItem(**found)
        for kind in _BINARY & result.formats.keys():
            yield _binary_item(kind, result.formats, call)


def _binary_item(kind: str, formats: Mapping[str, str], call: ToolCall) -> ResultItem:
    try:
        data = base64.b64decode(formats[kind], validate=True)
    except (binascii.Error, ValueError):
        data = b""
    found: dict[str, Any] = {"type": kind, "size": len(data)}
    if kind in _IMAGES:
        found["attached"] = bool(data) and call.attach_image(_IMAGES[kind], data)
    return ResultItem(**found)


def _cut(text: str) -> str:
    half = ERROR_CHARS // 2
    if len(text) <= ERROR_CHARS:
        return text
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
