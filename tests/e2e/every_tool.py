"""A call of every tool, and what each must answer to any client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp_types import TextContent


async def value_of(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool that must succeed; the client checks the result against the output schema itself."""
    result = await client.call_tool(tool, dict(arguments))
    assert not result.is_error, result.content
    text = result.content[0]
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == result.structured_content
    assert result.structured_content is not None
    return result.structured_content


def remaining_calls(home: str, sandbox_id: str, task_id: str) -> dict[str, dict[str, Any]]:
    """Calls of every tool but create_sandbox, run_command and start_task, in an order that works."""
    return {
        "list_sandboxes": {},
        "get_sandbox": {},
        "set_sandbox_timeout": {"timeout": 900},
        "run_code": {"code": "1 + 1"},
        "write_file": {"path": f"{home}/f", "content": "AAEC", "encoding": "base64", "mode": "600"},
        "read_file": {"path": f"{home}/f", "encoding": "base64"},
        "list_files": {"path": home},
        "get_task": {"sandbox_id": sandbox_id, "task_id": task_id},
        "cancel_task": {"sandbox_id": sandbox_id, "task_id": task_id},
        "upload_file": {"path": f"{home}/g", "content_base64": "AAEC"},
        "download_file": {"path": f"{home}/g"},
        "kill_sandbox": {"sandbox_id": sandbox_id},
    }
