"""One call, from raw arguments to the object that a client receives. The same for every transport."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cloche_contract.kernel.failure import ClocheError, envelope
from cloche_contract.kernel.registry import UnknownTool, published_set
from cloche_contract.kernel.toolset import ToolCall, ToolSession
from cloche_contract.kernel.validate import check_output, parse, validate_arguments

if TYPE_CHECKING:
    from pydantic import BaseModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What a call answers: an object that fits the output schema, or the envelope of an error."""

    structured: dict[str, Any]
    is_error: bool
    code: str | None = None


async def dispatch(
    toolset: str, session: ToolSession, tool: str, arguments: Mapping[str, Any] | None, call: ToolCall
) -> Outcome:
    """Validate, call the handler, check the result. Cancellation passes through.

    Raises:
        UnknownTool: the set has no such tool; a protocol error, not a result.

    Source: decisions D2, D5, D12.
    """
    if published_set(toolset).tool(tool) is None:
        raise UnknownTool(tool)
    try:
        structured = await _answer(toolset, session, tool, {} if arguments is None else arguments, call)
    except ClocheError as error:
        logger.info("tool failed", extra={"tool": tool, "error": error.code})
        return Outcome(envelope(toolset, error), True, error.code)
    except Exception as exc:
        # The text of a foreign exception may hold anything: only its kind is logged.
        logger.error("tool raised", extra={"tool": tool, "error": type(exc).__name__})
        logger.debug("tool raised", exc_info=exc)
        return Outcome(envelope(toolset, _internal()), True, "internal_error")
    return Outcome(structured, False)


def _internal() -> ClocheError:
    from cloche_contract._gen.errors import InternalError

    return InternalError()


async def _answer(
    toolset: str, session: ToolSession, tool: str, arguments: Mapping[str, Any], call: ToolCall
) -> dict[str, Any]:
    validate_arguments(toolset, tool, arguments)
    request = parse(toolset, tool, arguments)
    handler = getattr(session.handlers, tool)
    result = cast("BaseModel", await handler(request, call))
    structured = result.model_dump(mode="json", by_alias=True)
    check_output(toolset, tool, structured)
    return structured
