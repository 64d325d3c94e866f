"""`sandbox-mcp` with a tool set that writes down what happens to it, and prints wherever it can.

Run as a program by the tests of this folder. The journal is a file of lines, named by JOURNAL.
"""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from cloche_mcp_stdio.main import main


def journal(line: str) -> None:
    with open(os.environ["JOURNAL"], "a", encoding="utf-8") as file:
        file.write(line + "\n")


def chatter(where: str) -> None:
    """Everything that a dependency could do to stdout."""
    print(f"{where}: print")
    print(f"{where}: the original stdout", file=sys.__stdout__)
    os.write(1, f"{where}: descriptor 1\n".encode())
    subprocess.run(["sh", "-c", f"echo {where}: a child; cat"], check=True)


def open_toolset(options: object) -> object:
    import anyio
    import anyio.lowlevel

    from cloche_contract.errors import SandboxNotFound
    from cloche_contract.kernel.toolset import ToolCall
    from cloche_contract.sandbox import (
        CreateSandboxInput,
        CreateSandboxOutput,
        KillSandboxInput,
        RunCommandInput,
        RunCommandOutput,
        WriteFileInput,
        WriteFileOutput,
    )

    chatter("import of the tool set")

    class Handlers:
        def __init__(self) -> None:
            self.owned: list[str] = []

        async def create_sandbox(self, request: CreateSandboxInput, call: ToolCall) -> CreateSandboxOutput:
            name = f"sb-{len(self.owned)}"
            self.owned.append(name)
            journal(f"create {name}")
            if request.timeout == 86400:
                journal("create is in flight")
                await anyio.sleep_forever()
            return CreateSandboxOutput(sandbox_id=name, status="running", url=f"local:{name}")

        async def run_command(self, request: RunCommandInput, call: ToolCall) -> RunCommandOutput:
            chatter("handler")
            if request.command == "sleep":
                journal("sleeping")
                try:
                    await anyio.sleep_forever()
                finally:
                    journal("cancelled")
            if request.command == "crash":
                raise ValueError("a text that holds sk-secret")
            if request.command == "stubborn":
                journal("stubborn")
                with anyio.CancelScope(shield=True):
                    await anyio.sleep_forever()
            return RunCommandOutput(
                stdout=request.command, stderr="", exit_code=0, stop_reason="exit", timed_out=False, truncated=False,
                stdout_bytes=len(request.command.encode()), stderr_bytes=0, replaced=False,
            )  # fmt: skip

        async def write_file(self, request: WriteFileInput, call: ToolCall) -> WriteFileOutput:
            return WriteFileOutput(success=True, bytes_written=len(request.content))

        async def kill_sandbox(self, request: KillSandboxInput, call: ToolCall) -> object:
            raise SandboxNotFound

    class Session:
        handlers = Handlers()

    @asynccontextmanager
    async def session() -> AsyncGenerator[Session]:
        journal("session opened")
        try:
            yield Session()
        finally:
            with anyio.move_on_after(4, shield=True):
                for name in Session.handlers.owned:
                    await anyio.lowlevel.checkpoint()
                    journal(f"destroy {name}")
                if os.environ.get("HANG"):
                    await anyio.sleep_forever()
            journal("session closed")

    return session()


def serve() -> int:
    from cloche_contract.kernel import plugins

    chatter("start")
    plugins.names = lambda group: ("sandbox",)
    plugins.load = lambda group, name: open_toolset
    return main()


if __name__ == "__main__":
    import cloche_mcp_stdio

    cloche_mcp_stdio.reserve()
    sys.exit(serve())
