"""The boot without confinement: init as a child, the keeper here, one unix or TCP socket."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Generator, Sequence

from .agent import run_keeper
from .config import DEFAULT_PATH, AgentConfig, InitProfile, KeeperHooks, User
from .init import run_init
from .link import open_link


def main(arguments: Sequence[str]) -> int:
    """Run the agent until it is killed; return its exit status."""
    options = _parser().parse_args(arguments)
    workspace = _workspace(options)
    keeper_end, init_end = open_link()
    # Init first: what it inherits must not hold the token, because user code is a fork of it.
    if os.fork() == 0:
        keeper_end.close()
        _become_init(init_end, options)
    init_end.close()
    listeners = [_listen(options)]
    config = _configuration(options)
    # Whoever reads "ready" may end us at once, before the loop listens for it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    with _removed_at_end(options.socket):
        _say("ready")
        return run_keeper(config, keeper_end, listeners, KeeperHooks(workspace=workspace))


def _workspace(options: argparse.Namespace) -> socket.socket | None:
    if not options.layers:
        return None
    # Only here: sandboxes without layers, which import this module in advance, do not pay for the engine.
    from .workspace_host import WorkspaceSetup, start_host

    return start_host(WorkspaceSetup(options.layers, options.base, options.workspace))


def _become_init(link: socket.socket, options: argparse.Namespace) -> None:
    # Own session: what the terminal or the supervisor sends to the keeper's group is not meant for init, which ends
    # when the link closes, and kills what is left first.
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for target in (0, 1):
        os.dup2(null, target)
    if null > 2:
        os.close(null)
    os.umask(0o022)
    run_init(link, InitProfile(import_paths=tuple(options.import_path), die_with_parent=True))


def _configuration(options: argparse.Namespace) -> AgentConfig:
    root = os.path.realpath(options.root_dir) if options.root_dir else None
    home = os.path.realpath(options.home) if options.home else os.path.join(root or "/", "home/user")
    os.makedirs(home, exist_ok=True)
    return AgentConfig(
        sandbox_id=options.sandbox_id,
        access_token=_token(options),
        envs=dict(pair.split("=", 1) for pair in options.env),
        users=(User("user", os.getuid(), os.getgid(), home),),
        workdir=options.workspace or home,
        path=options.path,
        tmp_dir=options.tmp_dir,
        file_root=root,
        open_contexts=options.open_contexts,
    )


def _token(options: argparse.Namespace) -> str:
    source: str | int = options.token_file if options.token_fd is None else options.token_fd
    with open(source, encoding="ascii") as stream:
        return stream.read().strip()


def _listen(options: argparse.Namespace) -> socket.socket:
    if options.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(options.socket)
        os.chmod(options.socket, 0o600)
        listener.listen(1024)
        return listener
    listener = socket.create_server(("127.0.0.1", options.port), backlog=128)
    _say(f"port {listener.getsockname()[1]}")
    return listener


def _say(line: str) -> None:
    """Tell whoever started us: before "ready" nothing is served."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _removed_at_end(path: str | None) -> Generator[None]:
    try:
        yield
    finally:
        if path:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("cloche_agentd", description="Run the agent on this machine. Nothing is confined.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", help="path of the unix socket to listen on")
    where.add_argument("--port", type=int, help="loopback TCP port to listen on; 0 picks a free one")
    token = parser.add_mutually_exclusive_group(required=True)
    token.add_argument("--token-file", help="file that holds the access token")
    token.add_argument("--token-fd", type=int, help="descriptor to read the access token from")
    parser.add_argument("--home", help="home and working directory of the user")
    parser.add_argument("--root-dir", help="file operations outside this folder are refused")
    parser.add_argument("--sandbox-id", default="plain", help="id that the agent reports")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="variable of the sandbox")
    parser.add_argument("--path", default=DEFAULT_PATH, help="PATH of commands")
    parser.add_argument("--tmp-dir", default="/tmp", help="folder for what lasts no longer than a call")
    parser.add_argument("--import-path", action="append", default=[], help="folder that user code may import from")
    parser.add_argument("--layers", metavar="STORE", help="run commands in workspace sessions over the layers in STORE")
    parser.add_argument("--base", help="read-only folder below the layers")
    parser.add_argument("--workspace", help="folder where sessions see base and layers")
    parser.add_argument("--open-contexts", action="store_true", help="accept /contexts without a token")
    return parser


def entry() -> None:
    """Run as a program."""
    sys.exit(main(sys.argv[1:]))
