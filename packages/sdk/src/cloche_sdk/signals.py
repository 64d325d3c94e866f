"""Signals to processes in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cloche_contract import agent
from cloche_contract.errors import ProcessNotFound

from .data_plane import AgentChannel, agent_client, answered

__all__ = ["signal_process"]


async def signal_process(
    channel: AgentChannel,
    selector: Mapping[str, Any],
    signal: Literal["SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT"],
) -> bool:
    """Signal a process and what it started; False when there is no such process any more."""
    request = agent.SendSignalRequest(process=agent.ProcessSelector.model_validate(selector), signal=signal)
    try:
        await answered(agent_client(channel).process_send_signal(request))
    except ProcessNotFound:
        return False
    return True
