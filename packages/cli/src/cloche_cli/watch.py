"""`abx sandbox watch`: what changes below a directory of a sandbox, line by line."""

import json

from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_sdk import AsyncSandbox, FileChange


def watch_directory(sandbox_id: str, path: str, *, recursive: bool, timeout_s: int | None) -> int:
    """Write a line per change until the time is over, or this process is interrupted."""
    invocation = current()
    return run_async(lambda: _watch(sandbox_id, path, recursive, timeout_s, invocation))


async def _watch(sandbox_id: str, path: str, recursive: bool, timeout_s: int | None, invocation: Invocation) -> int:
    def tell(change: FileChange) -> None:
        if invocation.json:
            invocation.write(json.dumps({"type": change.type, "name": change.name}, ensure_ascii=False) + "\n")
        else:
            # Names are chosen inside: one with a line break must not look like two changes.
            invocation.write(f"{change.type:<8} {change.name.encode('unicode_escape').decode()}\n")

    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        watch = await sandbox.files.watch(path, recursive=recursive)
        invocation.note("watching; Ctrl+C ends it")
        await watch.follow(tell, timeout=timeout_s)
    finally:
        await sandbox.close()
    return 0
