"""GET /metrics: what the sandbox uses, as far as its own /proc tells."""

from __future__ import annotations

import os

from .config import AgentConfig


class Metrics:
    """Reads processor, memory and disk use. Processor use is measured between two reads."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._before = (0, 0)

    def read(self) -> dict[str, float | int]:
        """Return one sample; sizes are in bytes."""
        memory = _meminfo()
        total = memory.get("MemTotal", 0)
        disk_used, disk_total = self._disk()
        return {
            "ts": int(self._config.clock()),
            "cpu_count": os.cpu_count() or 1,
            "cpu_used_pct": self._cpu_percent(),
            "mem_total": total,
            "mem_used": total - memory.get("MemAvailable", total),
            "mem_cache": memory.get("Cached", 0),
            "disk_used": disk_used,
            "disk_total": disk_total,
        }

    def _cpu_percent(self) -> float:
        fields = _first_line("/proc/stat").split()[1:9]
        times = [int(field) for field in fields if field.isdigit()]
        if len(times) < 5:
            return 0.0
        now = (sum(times), times[3] + times[4])
        spent, idle = now[0] - self._before[0], now[1] - self._before[1]
        self._before = now
        return round(100.0 * (spent - idle) / spent, 2) if spent > 0 else 0.0

    def _disk(self) -> tuple[int, int]:
        try:
            found = os.statvfs(self._config.workdir or "/")
        except OSError:
            return 0, 0
        total = found.f_blocks * found.f_frsize
        return total - found.f_bfree * found.f_frsize, total


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.readline()
    except OSError:
        return ""


def _meminfo() -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as stream:
            for line in stream:
                name, _, rest = line.partition(":")
                number = rest.split()[:1]
                if number and number[0].isdigit():
                    found[name] = int(number[0]) * 1024
    except OSError:
        pass
    return found
