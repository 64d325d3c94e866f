"""Boots the plain agent and writes every import after its boot to a file (run as a script)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "packages/agentd/src"))

import cloche_agentd
from cloche_agentd import plain

LOG = Path(sys.argv[1])


def _armed(run: Callable[..., Any]) -> Callable[..., Any]:
    def run_audited(*arguments: Any) -> Any:
        sys.addaudithook(_write_imports)
        return run(*arguments)

    return run_audited


def _write_imports(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "import":
        with LOG.open("a") as stream:
            stream.write(f"{arguments[0]}\n")


if __name__ == "__main__":
    cloche_agentd.preload()
    for name in ("run_keeper", "run_init"):
        setattr(plain, name, _armed(getattr(plain, name)))
    sys.exit(plain.main(sys.argv[2:]))
