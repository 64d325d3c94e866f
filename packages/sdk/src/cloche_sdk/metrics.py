"""What a sandbox uses of its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from cloche_contract.agent import ROUTE_METRICS
from cloche_contract.errors import ProviderFailed

from .data_plane import AgentChannel

__all__ = ["Metrics", "read_metrics"]


@dataclass(frozen=True)
class Metrics:
    """One sample. Sizes are in bytes.

    `cpu_used_percent` is of all cores, since the sample before. Processor and memory are what the sandbox sees: on a
    local sandbox those of the whole machine.
    """

    cpu_count: int
    cpu_used_percent: float
    memory_total_bytes: int
    memory_used_bytes: int
    memory_cache_bytes: int
    disk_total_bytes: int
    disk_used_bytes: int


async def read_metrics(channel: AgentChannel) -> Metrics:
    """Take a sample."""
    found = await channel.plain("GET", ROUTE_METRICS)
    try:
        value = cast("Mapping[str, Any]", found)
        return Metrics(
            cpu_count=int(value["cpu_count"]),
            cpu_used_percent=float(value["cpu_used_pct"]),
            memory_total_bytes=int(value["mem_total"]),
            memory_used_bytes=int(value["mem_used"]),
            memory_cache_bytes=int(value.get("mem_cache", 0)),
            disk_total_bytes=int(value["disk_total"]),
            disk_used_bytes=int(value["disk_used"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ProviderFailed from None
