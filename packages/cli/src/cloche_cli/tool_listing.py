"""`abx mcp tools`: what the server offers, and how a call of one tool looks."""

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from cloche_cli.invocation import current
from cloche_cli.usage import Refused
from cloche_contract.registry import ToolFilter, published_set


def list_tools(allowed: ToolFilter) -> int:
    """Tell each tool that is offered, with its first sentence."""
    from cloche_cli.tables import print_table

    tools = allowed.apply(published_set("sandbox")).tools
    invocation = current()
    if invocation.json:
        invocation.emit({"tools": [_summary(tool) for tool in tools.values()]})
        return 0
    rows = [(name, tool["title"], "reads" if _reads(tool) else "changes") for name, tool in tools.items()]
    print_table(("TOOL", "WHAT IT DOES", "EFFECT"), rows, empty="No tool is offered.")
    return 0


def show_tool(name: str) -> int:
    """Tell everything of one tool, and an example of a call.

    Raises:
        Refused: there is no such tool.
    """
    published = published_set("sandbox")
    tool = published.tool(name)
    if tool is None:
        fix = f"Name one of: {', '.join(published.tool_names)}."
        raise Refused("not_found", "must be the name of a tool.", field="NAME", fix=fix)
    call = {"name": name, "arguments": published.meta[name]["example"]}
    invocation = current()
    if invocation.json:
        facts = {key: published.meta[name][key] for key in ("since", "stability", "errors")}
        invocation.emit({**tool, **facts, "example": call})
        return 0
    invocation.write(f"{name}: {tool['title']}\n\n{textwrap.fill(tool['description'], 88)}\n\n")
    for title, value in (("arguments", tool["inputSchema"]), ("result", tool["outputSchema"]), ("example", call)):
        invocation.write(f"{title}:\n{textwrap.indent(json.dumps(value, ensure_ascii=False, indent=2), '  ')}\n\n")
    invocation.write(f"errors: {', '.join(published.meta[name]['errors'])}\n")
    return 0


def _summary(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "title": tool["title"],
        "description": tool["description"],
        "read_only": _reads(tool),
    }


def _reads(tool: Mapping[str, Any]) -> bool:
    return bool(tool["annotations"]["readOnlyHint"])
