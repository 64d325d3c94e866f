"""A manager that kills itself: python -m … create|destroy STEP before|after WORKSPACE, at one step of its work, or
python -m … squash|export SANDBOX SECONDS DEST, so many seconds after it began.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import anyio

from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_docker_manager.engine import Engine
from cloche_docker_manager.toolset import open_toolset
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


async def deliver(task: str, sandbox_id: str, seconds: str, dest: str) -> None:
    async with open_toolset(ToolSetOptions(environ=dict(os.environ))) as session:
        tools = Tools(session)
        # An interval timer ends the process by a signal that nothing catches: as abrupt as a kill.
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        if task == "squash":
            await tools.ok("squash_layerstacks", sandbox_id=sandbox_id)
        else:
            await tools.ok("export_changes", sandbox_id=sandbox_id, dest=dest)


async def main(words: list[str]) -> None:
    if words[0] in ("squash", "export"):
        await deliver(*words)
        return
    async with opened(dict(os.environ)) as tools:
        await work(tools, *words)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
