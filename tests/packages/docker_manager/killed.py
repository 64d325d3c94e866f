"""A manager that kills itself before or after one step: python -m … create|destroy STEP before|after WORKSPACE."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import anyio

from cloche_docker_manager.engine import Engine
from tests.docker_engine import BUSYBOX
from tests.packages.docker_manager.managed import Tools, opened


def die_at(step: str, when: str) -> None:
    real = getattr(Engine, step)

    def deadly(engine: Engine, *arguments: Any) -> Any:
        if when == "after":
            real(engine, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(Engine, step, deadly)


async def work(tools: Tools, task: str, step: str, when: str, workspace: str) -> None:
    await tools.ok("list_docker_images")
    if task == "create":
        die_at(step, when)
    made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=workspace)
    die_at(step, when)
    await tools.ok("destroy_sandbox", sandbox_id=made["id"])


async def main(words: list[str]) -> None:
    async with opened(dict(os.environ)) as tools:
        await work(tools, *words)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
