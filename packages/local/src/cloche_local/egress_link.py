"""The keeper's side of egress: the listening socket inside, the self-test, live updates, and what was denied.

Standard library only.
"""

import asyncio
import errno
import json
import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from cloche_local.egress_rules import Malformed, Policy, parse_rules, parse_target
from cloche_local.setup import SetupFailed
from cloche_local.spec import Protections

PROXY_ADDRESS = ("127.0.0.1", 3128)
_PROXY_URL = f"http://{PROXY_ADDRESS[0]}:{PROXY_ADDRESS[1]}"
_NOT_PROXIED = "localhost,127.0.0.1,::1"
# Both spellings: curl reads http_proxy in lower case only, others the upper case one first.
ENVIRONMENT: Mapping[str, str] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _PROXY_URL),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), _NOT_PROXIED),
}
_BACKLOG = 128
_START_S = 10.0
_UPDATE_S = 2.0
_MESSAGE_BYTES = 4096
_KEPT = 256
_TOLD = 16
# Addresses that nobody wants a sandbox to reach: metadata of clouds, and a private one. The first one that no rule
# lists is tried.
_FORBIDDEN = ("169.254.169.254:80", "100.100.100.200:80", "10.255.255.254:80", "[fd00:ec2::254]:80")


class EgressLink:
    """One sandbox's egress process, as its keeper holds it."""

    def __init__(self, control: socket.socket, denials: socket.socket) -> None:
        self._control = control
        self._denials = denials
        self._denials.setblocking(False)
        self._texts: list[str] = []
        self._found: deque[tuple[int, dict[str, str]]] = deque(maxlen=_KEPT)
        self._count = 0
        self._updating = asyncio.Lock()

    # -- starting: blocking, before the sandbox answers -------------------------------------------------------------

    def start(self, rules: Sequence[str], on: Protections) -> None:
        """Listen inside, hand the socket over, and see that what must be blocked is blocked.

        The caller is in the sandbox's net namespace, and nothing of the user's runs yet.

        Raises:
            SetupFailed: step `egress`; the sandbox must not be used.
        """
        self._texts = list(rules)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
                listener.bind(PROXY_ADDRESS)
                listener.listen(_BACKLOG)
                self._control.settimeout(_START_S)
                socket.send_fds(self._control, [self._message(rules)], [listener.fileno()])
                answer = self._control.recv(_MESSAGE_BYTES)
        except OSError as error:
            raise SetupFailed("egress", error.errno or errno.ETIMEDOUT) from error
        if answer != b'{"ok":true}':
            raise SetupFailed("egress", _refused_with(answer))
        if on.egress_self_test:
            self._test()
        self._drain()
        self._found.clear()

    def _test(self) -> None:
        """Ask for a name and an address that no rule lists, the way that a program inside would."""
        policy = Policy(parse_rules(self._texts))
        blocked = [f"{os.urandom(8).hex()}.invalid:443"]
        blocked += [text for text in _FORBIDDEN if not policy.lists(parse_target(text))][:1]
        for target in blocked:
            try:
                with socket.create_connection(PROXY_ADDRESS, _START_S) as client:
                    client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
                    answer = client.recv(_MESSAGE_BYTES)
            except OSError as error:
                raise SetupFailed("egress", error.errno or errno.ETIMEDOUT) from error
            if not answer.startswith(b"HTTP/1.1 403 "):
                raise SetupFailed("egress", errno.EPERM)

    # -- while the sandbox lives ------------------------------------------------------------------------------------

    async def update(self, add: Sequence[str], remove: Sequence[str]) -> list[str]:
        """Change the rules; returns those in force. Connections that lose their rule are cut.

        Raises:
            ValueError: a rule is malformed, or there are too many. Nothing changed.
            LookupError: one to remove is not in force. Nothing changed.
            OSError: the egress process is gone or does not answer.
        """
        async with self._updating:
            if not add and not remove:
                return list(self._texts)
            gone = set(parse_rules(remove))
            rules = parse_rules(self._texts)
            if not gone.issubset(rules):
                # One that is written in another way than it was added would else stay, and nobody would know.
                raise LookupError("not in force")
            kept = [rule for rule in rules if rule not in gone]
            texts = [str(rule) for rule in parse_rules([*map(str, kept), *add])]
            self._control.setblocking(False)
            try:
                await self._tell(texts)
            except BaseException:
                # Which rules hold is not known then: let the process end, and with it the network.
                self.close()
                raise
            self._texts = texts
            return texts

    async def _tell(self, rules: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_UPDATE_S):
            await loop.sock_sendall(self._control, self._message(rules))
            if await loop.sock_recv(self._control, _MESSAGE_BYTES) != b'{"ok":true}':
                raise BrokenPipeError(errno.EPIPE, "no egress process")

    def mark(self) -> int:
        """Where the denials of a call begin that starts now."""
        self._drain()
        return self._count

    def since(self, mark: int) -> Sequence[Mapping[str, str]]:
        """What was denied since `mark`, each destination once, the first ones."""
        self._drain()
        found = {entry["target"]: entry for number, entry in self._found if number > mark}
        return list(found.values())[:_TOLD]

    def close(self) -> None:
        """Let the egress process end."""
        self._control.close()
        self._denials.close()

    def _message(self, rules: Sequence[str]) -> bytes:
        return json.dumps({"rules": list(rules)}).encode()

    def _drain(self) -> None:
        """Read what the egress process reported: it writes a report before its client hears of the denial."""
        for _ in range(_KEPT):
            try:
                raw = self._denials.recv(_MESSAGE_BYTES)
            except OSError:
                return
            if not raw:
                return
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                self._take(cast("dict[str, object]", json.loads(raw)))

    def _take(self, message: Mapping[str, object]) -> None:
        # Read again: the process that wrote it reads what hostile programs write.
        target = parse_target(str(message["target"]))
        entry = {"target": str(target)}
        if message.get("rule") is not None:
            entry["rule"] = target.rule()
        self._count += 1
        self._found.append((self._count, entry))


def _refused_with(answer: bytes) -> int:
    with suppress(ValueError, KeyError, TypeError):
        return int(json.loads(answer)["errno"])
    return errno.EPIPE


__all__ = ["ENVIRONMENT", "PROXY_ADDRESS", "EgressLink", "Malformed"]
