"""The egress process of one sandbox: outside it, with the host's network, and with as few rights as can be had.

The zygote forks it for a sandbox that has an allowlist. It gets its rules and a listening socket from the keeper, and
ends when the keeper's end of the control socket closes.
"""

import asyncio
import importlib
import json
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cloche_local import init, mounts, seccomp, users
from cloche_local import syscalls as sys_
from cloche_local.egress_proxy import Denied, EgressProxy
from cloche_local.egress_rules import Policy, parse_rules
from cloche_local.setup import SetupFailed, step
from cloche_local.spec import Protections

if TYPE_CHECKING:
    from concurrent.futures.thread import ThreadPoolExecutor

MESSAGE_BYTES = 131072
# Ids that no account and no sandbox has: the 65,536 below the ranges of sandboxes, one per process.
_FIRST_UID = users.FIRST_RANGE - users.RANGE_SIZE
_OPEN_FILES = 1024
# A proxy starts no program and has no business with other processes, which an ordinary user's proxy could signal.
_REFUSED_CALLS = """
execve execveat fork vfork kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd pidfd_send_signal
ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp shmget shmat msgget semget mq_open
"""
_RESOLVERS = 8


def fork_egress(hidden: Sequence[str], on: Protections) -> tuple[int, int]:
    """Fork an egress process; returns the keeper's ends of its control socket and of its denials.

    The caller is single-threaded and on the host. Args: `hidden` are folders that the process must not see.

    Raises:
        OSError: no process could be made.
    """
    # What only this process needs is imported for the first of them, and then there for all: in the process itself
    # the host's Python may not be readable any more.
    for name in ("concurrent.futures.thread", "encodings.idna"):
        importlib.import_module(name)
    control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    denials, their_denials = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with their_control, their_denials:
        try:
            pid = os.fork()
        except OSError:
            control.close()
            denials.close()
            raise
        if pid == 0:
            try:
                _be_egress(their_control, their_denials, hidden, on)
            finally:
                os._exit(70)
    return control.detach(), denials.detach()


def _be_egress(control: socket.socket, denials: socket.socket, hidden: Sequence[str], on: Protections) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    init.close_all_but([control.fileno(), denials.fileno()], on)
    from concurrent.futures.thread import ThreadPoolExecutor

    try:
        confine(hidden, on)
        with ThreadPoolExecutor(_RESOLVERS) as resolvers:
            asyncio.run(_serve(control, denials, on, resolvers))
    except SetupFailed as failure:
        with suppress(OSError):
            control.send(json.dumps({"failed": failure.step, "errno": failure.errno}).encode())
    except (OSError, ValueError):
        # The keeper is gone, or it said something else than a keeper says: nothing is served.
        pass
    os._exit(0)


def confine(hidden: Sequence[str], on: Protections) -> None:
    """Keep the network and the resolver's files, and give up the rest. Public for the test that takes a part out.

    Raises:
        SetupFailed: step `egress`.
    """
    import resource

    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.umask(0o077)
    for kind, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, _OPEN_FILES)):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    # A name that is looked up now loads what looking up needs, while everything can be read.
    with suppress(OSError):
        socket.getaddrinfo("localhost", 80)
    filter_program = seccomp.build_filter(os.uname().machine, without=frozenset(_REFUSED_CALLS.split()))
    host_root = os.geteuid() == 0
    uid, gid = os.getuid(), os.getgid()
    step("egress", sys_.unshare, sys_.CLONE_NEWNS | (0 if host_root else sys_.CLONE_NEWUSER))
    if not host_root:
        # The same id inside: files are what they were, and rights over mounts end with the capabilities below.
        step("egress", users.write_single_map, uid, gid, (uid, gid))
    step("egress", mounts.make_private)
    for folder in sorted(set(hidden), key=len, reverse=True) if on.egress_state_hidden else ():
        # Tokens and sockets of every sandbox lie there. One may lie in the other: the inner one first.
        flags = sys_.MS_RDONLY | sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC
        step("egress", sys_.mount, "none", folder, "tmpfs", flags, "size=4k,nr_inodes=2")
    if on.drop_capabilities:
        step("egress", users.limit_capabilities, _SETIDS if host_root else 0)
    if host_root and on.egress_own_id:
        step("egress", _become_nobody)
    if on.drop_capabilities:
        step("egress", sys_.capset, 0)
    step("egress", sys_.prctl, sys_.PR_SET_NO_NEW_PRIVS, 1)
    if on.seccomp:
        step("egress", sys_.set_seccomp, filter_program)
    step("egress", sys_.prctl, sys_.PR_SET_DUMPABLE, 0)


# SETGID, SETUID.
_SETIDS = 1 << 6 | 1 << 7


def _become_nobody() -> None:
    uid = _FIRST_UID + os.getpid() % users.RANGE_SIZE
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


async def _serve(
    control: socket.socket, denials: socket.socket, on: Protections, resolvers: "ThreadPoolExecutor"
) -> None:
    """Serve the keeper and the sandbox until the keeper is gone."""
    control.setblocking(False)
    denials.setblocking(False)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(resolvers)
    await _readable(control)
    raw, fds, _flags, _address = socket.recv_fds(control, MESSAGE_BYTES, 1)
    if not raw or not fds:
        return
    listener = socket.socket(fileno=fds[0])
    listener.setblocking(False)

    def report(denied: Denied) -> None:
        # Full: nobody reads denials between calls, and the first ones tell enough.
        with suppress(OSError):
            denials.send(json.dumps({"target": str(denied.target), "rule": denied.rule}).encode())

    proxy = EgressProxy(_policy(raw), report, enforce=on.egress_policy)
    serving = loop.create_task(proxy.serve(listener))
    control.send(b'{"ok":true}')
    while raw := await loop.sock_recv(control, MESSAGE_BYTES):
        proxy.update(_policy(raw))
        control.send(b'{"ok":true}')
    # Not awaited: connections are cut by the end of the process, which is next.
    serving.cancel()
    os._exit(0)


async def _readable(channel: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(channel)


def _policy(raw: bytes) -> Policy:
    message = cast("dict[str, Any]", json.loads(raw))
    return Policy(parse_rules(cast("list[str]", message["rules"])))
