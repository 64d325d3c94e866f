"""How much a command, code or a task may print in all before its agent ends it."""

from __future__ import annotations

from cloche_contract.agent import HEADER_OUTPUT_LIMIT
from cloche_contract.errors import InvalidArgument

from .link import SandboxLink

__all__ = ["limit_headers", "output_limit_bytes"]

OUTPUT_LIMIT_MAX = 1 << 50


def output_limit_bytes(link: SandboxLink, asked: int | None, *, streamed: bool = False) -> int:
    """The limit to send; 0 is none.

    Args:
        asked: what the caller gives; None is the setting, or no limit where the output is `streamed` to the caller.

    Raises:
        InvalidArgument: it is out of range.

    Source: faults O10, O11.
    """
    if asked is None:
        return 0 if streamed else link.output_limit
    if asked < 0:
        raise InvalidArgument(field="output_limit", rule="minimum", limit=0)
    if asked > OUTPUT_LIMIT_MAX:
        raise InvalidArgument(field="output_limit", rule="maximum", limit=OUTPUT_LIMIT_MAX)
    return asked


def limit_headers(link: SandboxLink, asked: int | None, *, streamed: bool) -> dict[str, str]:
    """The headers that tell it to the agent with the start of a process."""
    limit = output_limit_bytes(link, asked, streamed=streamed)
    return {HEADER_OUTPUT_LIMIT: str(limit)} if limit else {}
