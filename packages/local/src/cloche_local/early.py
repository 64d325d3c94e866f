"""The zygote's process, started before anybody knows what to tell it: what it imports overlaps with what we import.

For a program that will make one sandbox and is only being loaded. Standard library only, and little of it.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass

# Constant, as user code can read the arguments of the process that its interpreter was forked from. Everything that
# differs arrives over the control socket, which is descriptor 0.
_BOOT = (
    "import socket,sys;c=socket.socket(fileno=0);sys.path[:0]=c.recv(65536).decode().split(chr(0));"
    "from cloche_local import zygote;zygote.main(c)"
)


@dataclass(frozen=True)
class Begun:
    """A zygote that has been told where its code is, and nothing else."""

    process: subprocess.Popen[bytes]
    control: socket.socket


def begin() -> None:
    """Start the process that the next `take` finds. Errors wait for whoever needs it."""
    global _begun
    if _begun is None and sys.platform == "linux":
        try:
            _begun = start(empty_environment=True)
        except OSError:
            return


def take() -> Begun | None:
    """The process that was begun, for one taker; None where there is none that lives."""
    global _begun
    begun, _begun = _begun, None
    if begun is not None and begun.process.poll() is not None:
        begun.control.close()
        return None
    return begun


def start(*, empty_environment: bool) -> Begun:
    """Start a zygote.

    Raises:
        OSError: no process, or our own code is not installed.
    """
    # Executed from the real path: a virtual environment's link would bring its site-packages' location along.
    python = os.path.realpath(sys.executable)
    folders = "\0".join(code_folders()).encode()
    with ExitStack() as ours:
        control, stdin = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.enter_context(control)
        with stdin:
            control.setblocking(False)
            process = subprocess.Popen(
                [python, "-I", "-S", "-c", _BOOT],
                stdin=stdin.fileno(),
                stdout=subprocess.DEVNULL,
                # Its failures are the server's to show; keepers turn to a log of their own.
                stderr=None,
                cwd="/",
                env={} if empty_environment else None,
                # A Ctrl-C in the server's terminal is for the server alone.
                start_new_session=True,
            )
        control.send(folders)
        ours.pop_all()
    return Begun(process, control)


def code_folders() -> list[str]:
    """Where the guest half and the agent are imported from. Found, not imported: the agent is the guest's."""
    folders: list[str] = []
    for package in ("cloche_local", "cloche_agentd"):
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise FileNotFoundError(2, f"the package {package} is not installed")
        folder = os.path.dirname(os.path.abspath(found.submodule_search_locations[0]))
        if folder not in folders:
            folders.append(folder)
    return folders


_begun: Begun | None = None
