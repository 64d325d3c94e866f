"""Boots the agent as a runtime does, with hooks that write what they are told to a file (run as a script)."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "packages/agentd/src"))

import cloche_agentd
from cloche_agentd import AgentConfig, InitProfile, KeeperHooks, User, open_link, run_init, run_keeper


def main(folder: Path) -> int:
    """Serve on `folder`/a.sock; users `user` and `root`, the latter by a second init."""
    cloche_agentd.preload()
    keeper_end = _init()
    log = folder / "hooks.log"

    def told(line: str) -> None:
        with log.open("a") as stream:
            stream.write(line + "\n")

    def open_spawner(user: User) -> socket.socket:
        told(f"spawner {user.name}")
        return _init()

    home = str(folder / "home")
    config = AgentConfig(
        sandbox_id="hooked",
        access_token="test-token",
        envs={"OF_SANDBOX": "1"},
        users=(User("user", os.getuid(), os.getgid(), home), User("root", 0, 0, home)),
        workdir=home,
    )
    hooks = KeeperHooks(
        on_renew=lambda seconds: told(f"renew {seconds}"),
        on_kill=lambda: told("kill"),
        open_user_spawner=open_spawner,
        facts=lambda: {"deadline": None},
    )
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "a.sock"))
    listener.listen()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    return run_keeper(config, keeper_end, [listener], hooks)


def _init() -> socket.socket:
    keeper_end, init_end = open_link()
    if os.fork() == 0:
        keeper_end.close()
        null = os.open("/dev/null", os.O_RDWR)
        for target in (0, 1):
            os.dup2(null, target)
        run_init(init_end, InitProfile())
    init_end.close()
    return keeper_end


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
