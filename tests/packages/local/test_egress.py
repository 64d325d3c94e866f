"""Sandboxes with a network allowlist, end to end: real sandboxes, and servers of the test on the host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from cloche_contract.errors import BackendUnavailable, ConfigurationInvalid, InvalidArgument, UnsupportedOperation
from cloche_contract.provider import InspectRequest, KillRequest, UpdateNetworkRequest
from cloche_local.egress_rules import is_ordinary
from cloche_local.provider import LocalProvider
from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened, until_gone

# The servers are on the host's loopback, which NO_PROXY names.
_CURL = "curl -sS -m 15 --noproxy '' -o /tmp/body -w '%{http_code}'"


class Host:
    """A server on the host's loopback."""

    def __init__(self) -> None:
        self.requests = 0
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
            await writer.drain()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def rule(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def host() -> AsyncGenerator[Host]:
    found = Host()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    async with server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


async def _status(sandbox: Sandbox, url: str) -> str:
    return (await sandbox.run(f"{_CURL} {url}")).stdout


def _egress_pids(state: Path) -> list[int]:
    """Processes on the host that hide this state folder from themselves: the egress processes of its sandboxes."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            mounts = Path(f"/proc/{name}/mountinfo").read_text()
        except OSError:
            continue
        if any(line.split()[4] == str(state) and " - tmpfs none " in line for line in mounts.splitlines()):
            found.append(int(name))
    return found


@asynccontextmanager
async def _sandbox(folder: Path, rules: list[str], **protections: bool) -> AsyncGenerator[Sandbox]:
    provider = make_provider(folder, protections=Protections(**protections))
    async with opened(provider), made(provider, egress=rules) as sandbox:
        yield sandbox


# -- off by default ----------------------------------------------------------------------------------------------------


async def test_without_an_allowlist_there_is_no_network_and_no_proxy(
    folder: Path, sandbox: Sandbox, provider: LocalProvider
) -> None:
    """Decision D25: off by default."""
    assert (await sandbox.run("env | grep -i proxy")).stdout == ""
    assert (await sandbox.python("import socket; socket.create_connection(('127.0.0.1', 3128))")).exit_code == 1
    assert _egress_pids(folder / "state") == []
    assert (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).network == "none"
    with pytest.raises(UnsupportedOperation):
        await provider.update_network(UpdateNetworkRequest(sandbox_id=sandbox.id, allow=["docs.example.org"]))


async def test_an_allowlist_that_is_empty_allows_nothing(folder: Path, usable: None, host: Host) -> None:
    """Security: CVE-2025-66479, empty meant everything."""
    async with _sandbox(folder, []) as sandbox:
        assert await _status(sandbox, host.url) == "403"
        assert await _status(sandbox, "http://example.com/") == "403"
        assert host.requests == 0


# -- what is allowed, and what is not ----------------------------------------------------------------------------------


async def test_e8_a_host_outside_the_allowlist_is_denied(folder: Path, usable: None, host: Host) -> None:
    """Faults E8: it answered 200. The listed port answers, the server beside it does not."""
    other = await asyncio.start_server(host.answer, "127.0.0.1", 0)
    async with other, _sandbox(folder, [host.rule]) as sandbox:
        assert await _status(sandbox, host.url) == "200"
        assert (await sandbox.run("cat /tmp/body")).stdout == "hello\n"
        port = other.sockets[0].getsockname()[1]
        assert await _status(sandbox, f"http://127.0.0.1:{port}/") == "403"
        assert await _status(sandbox, f"http://localhost:{host.port}/") == "403"
        assert host.requests == 1


async def test_e8_with_the_policy_taken_out_the_sandbox_is_refused(folder: Path, usable: None) -> None:
    """Faults E8: a self-test at start, that a blocked host is blocked; it bites where nothing is blocked."""
    provider = make_provider(folder, protections=Protections(egress_policy=False))
    async with opened(provider):
        with pytest.raises(BackendUnavailable) as refused:
            async with made(provider, egress=["docs.example.org"]):
                pass
        assert refused.value.details["cause"] == "egress_failed"
        # Its process may be on its way out still.
        for pid in _egress_pids(folder / "state"):
            await until_gone(pid)


async def test_without_policy_and_self_test_everything_is_reached(folder: Path, usable: None, host: Host) -> None:
    """Both protections bite: with both taken out, the unlisted host answers."""
    async with _sandbox(folder, [], egress_policy=False, egress_self_test=False) as sandbox:
        assert await _status(sandbox, host.url) == "200"


async def test_e9_a_relay_inside_gets_no_further(folder: Path, usable: None, host: Host) -> None:
    """Faults E9: CONNECT relayed by a local process. The policy is by destination; there is no other way out."""
    relay = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 8888))
print("up", flush=True)
client, _ = listener.accept()
client.recv(65536)
try:
    out = socket.create_connection(("127.0.0.1", PORT), timeout=5)
    print("direct", flush=True)
except OSError as error:
    print("refused", flush=True)
out = socket.create_connection(("127.0.0.1", 3128), timeout=5)
out.sendall(b"CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: docs.example.org:443\\r\\n\\r\\n")
client.sendall(out.recv(65536))
client.close()
""".replace("PORT", str(host.port))
    script = (
        f"cat > /tmp/relay.py <<'END'\n{relay}\nEND\n"
        "python3 /tmp/relay.py > /tmp/relay.txt & "
        "until grep -q up /tmp/relay.txt; do :; done; "
        "curl -sS -m 15 --noproxy '' -x http://127.0.0.1:8888 -p http://docs.example.org 2>&1; wait; cat /tmp/relay.txt"
    )
    async with _sandbox(folder, ["docs.example.org"]) as sandbox:
        ran = await sandbox.run(script)
        assert "403" in ran.stdout
        assert ran.stdout.split()[-2:] == ["up", "refused"], ran.stdout
        assert host.requests == 0


async def test_e10_connect_to_an_allowed_host_works(folder: Path, usable: None, host: Host) -> None:
    """Faults E10: every CONNECT was blocked. A tunnel (-p) carries a request to the host's server."""
    async with _sandbox(folder, [host.rule]) as sandbox:
        assert (await sandbox.run(f"{_CURL} -p {host.url}")).stdout == "200"
        assert (await sandbox.run("cat /tmp/body")).stdout == "hello\n"


async def test_e11_ports_and_networks_are_part_of_a_rule(folder: Path, usable: None, host: Host) -> None:
    """Faults E11: any port of an allowed host; no rules for networks."""
    async with _sandbox(folder, ["127.0.0.1", f"127.0.0.8/29:{host.port}"]) as sandbox:
        assert await _status(sandbox, host.url) == "403"
        assert await _status(sandbox, f"http://127.0.0.9:{host.port}/") in ("200", "502")
        assert await _status(sandbox, f"http://127.0.0.17:{host.port}/") == "403"


async def test_a_listed_name_with_a_private_address_is_denied(folder: Path, usable: None, host: Host) -> None:
    """localhost is a name of the host's loopback: only a rule for the address opens it."""
    async with _sandbox(folder, [f"localhost:{host.port}"]) as sandbox:
        assert await _status(sandbox, f"http://localhost:{host.port}/") == "403"
        assert "private or reserved" in (await sandbox.run("cat /tmp/body")).stdout
        assert host.requests == 0
    async with _sandbox(folder, [f"localhost:{host.port}", host.rule]) as sandbox:
        assert await _status(sandbox, f"http://localhost:{host.port}/") == "200"


async def test_the_sandbox_has_no_other_way_out(folder: Path, usable: None, host: Host) -> None:
    """The net namespace still has nothing but its loopback, also with an allowlist."""
    code = "import os; print(sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else ['lo'])"
    direct = f"import socket; socket.create_connection(('127.0.0.1', {host.port}), timeout=5)"
    async with _sandbox(folder, [host.rule]) as sandbox:
        assert (await sandbox.python(code)).stdout.strip() in ("['lo']", "[]")
        assert (await sandbox.run("cat /proc/net/dev")).stdout.count(":") == 1
        assert (await sandbox.python(direct)).exit_code == 1
        outside = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('8.8.8.8', 53))"
        assert "unreachable" in (await sandbox.python(outside)).stderr


# -- what is told ------------------------------------------------------------------------------------------------------


async def test_e13_a_denial_is_told_with_the_end_of_its_command(folder: Path, usable: None, host: Host) -> None:
    """Faults E13: one shape that names the rule, reported with the result of the call."""
    async with _sandbox(folder, [host.rule]) as sandbox:
        ran = await sandbox.run(f"{_CURL} http://example.com/; {_CURL} https://example.com:8443/; {_CURL} {host.url}")
        assert ran.stdout == "403000200"
        assert ran.denied == [
            {"target": "example.com:80", "rule": "example.com"},
            {"target": "example.com:8443", "rule": "example.com:8443"},
        ]
        # The next call is not told what the one before was denied.
        assert (await sandbox.run(f"{_CURL} {host.url}")).denied == []


async def test_e13_a_denial_is_told_with_the_end_of_its_code(folder: Path, usable: None) -> None:
    """Faults E13, for run_code: interpreter and program alike, and a timeout."""
    code = "import urllib.request\ntry:\n    urllib.request.urlopen('http://example.com/')\nexcept OSError: pass\n"
    shell = f"{_CURL} http://example.com/"
    wanted = [{"target": "example.com:80", "rule": "example.com"}]
    async with _sandbox(folder, []) as sandbox:
        assert (await sandbox.execute(code))[-1]["denied"] == wanted
        assert (await sandbox.execute(shell, language="shell"))[-1]["denied"] == wanted
        assert "denied" not in (await sandbox.execute("1"))[-1]
        late = await sandbox.run(f"{shell}; sleep 60", timeout_s=2)
        assert late.error["code"] == "deadline_exceeded"
        assert late.denied == wanted


async def test_a_flood_of_denials_is_bounded(folder: Path, usable: None) -> None:
    """What the keeper keeps and tells does not grow with what a program asks."""
    code = """
import socket
for n in range(2000):
    with socket.create_connection(("127.0.0.1", 3128)) as client:
        client.sendall(b"CONNECT host%d.example:443 HTTP/1.1\\r\\n\\r\\n" % n)
        assert client.recv(100).startswith(b"HTTP/1.1 403")
"""
    async with _sandbox(folder, []) as sandbox:
        ran = await sandbox.python(code, timeout_s=60)
        assert ran.exit_code == 0, ran.stderr
        assert len(ran.denied) == 16
        assert ran.denied[0] == {"target": "host0.example:443", "rule": "host0.example"}
        assert (await sandbox.run("true")).denied == []


async def test_inspect_shows_the_rules(folder: Path, usable: None) -> None:
    provider = make_provider(folder)
    async with opened(provider), made(provider, egress=["Docs.Example.org", "10.0.0.0/8:5432"]) as sandbox:
        shown = await provider.inspect(InspectRequest(sandbox_id=sandbox.id))
        assert shown.network == "allowlist: docs.example.org, 10.0.0.0/8:5432"


# -- where the list comes from -----------------------------------------------------------------------------------------


async def test_the_setting_opens_what_it_lists_and_a_request_goes_before_it(
    folder: Path, usable: None, host: Host
) -> None:
    """ABX_LOCAL_EGRESS, comma-separated; blank is no network."""
    provider = make_provider(folder, local_egress=f" {host.rule} , docs.example.org,")
    async with opened(provider):
        async with made(provider) as sandbox:
            assert await _status(sandbox, host.url) == "200"
        async with made(provider, egress=["docs.example.org"]) as sandbox:
            assert await _status(sandbox, host.url) == "403"
    async with opened(make_provider(folder, local_egress=" , ")) as provider, made(provider) as sandbox:
        assert (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).network == "none"


async def test_a_malformed_rule_makes_no_sandbox(folder: Path, usable: None) -> None:
    """Fail closed: a rule that cannot be read is not skipped."""
    async with opened(make_provider(folder, local_egress="docs.example.org,*")) as provider:
        with pytest.raises(ConfigurationInvalid) as wrong:
            async with made(provider):
                pass
        assert wrong.value.details["setting"] == "ABX_LOCAL_EGRESS"
        with pytest.raises(InvalidArgument):
            async with made(provider, egress=["http://docs.example.org/"]):
                pass


async def test_an_update_holds_at_once(folder: Path, usable: None, host: Host) -> None:
    """Live update: rules are added and removed while the sandbox lives."""
    provider = make_provider(folder)
    async with opened(provider), made(provider, egress=[]) as sandbox:
        assert await _status(sandbox, host.url) == "403"
        changed = await provider.update_network(UpdateNetworkRequest(sandbox_id=sandbox.id, allow=[host.rule]))
        assert changed.rules == [host.rule]
        assert await _status(sandbox, host.url) == "200"
        with pytest.raises(InvalidArgument):
            await provider.update_network(UpdateNetworkRequest(sandbox_id=sandbox.id, allow=["*"]))
        changed = await provider.update_network(
            UpdateNetworkRequest(sandbox_id=sandbox.id, allow=["docs.example.org"], remove=[host.rule])
        )
        assert changed.rules == ["docs.example.org"]
        assert await _status(sandbox, host.url) == "403"


async def test_f24_a_rule_to_remove_that_is_not_there_is_refused(folder: Path, usable: None, host: Host) -> None:
    """container-use#320: taken for removed, a rule that was written in another way would stay open."""
    provider = make_provider(folder)
    async with opened(provider), made(provider, egress=[host.rule, "docs.example.org"]) as sandbox:
        wanted = UpdateNetworkRequest(sandbox_id=sandbox.id, allow=["a.example"], remove=[host.rule, "never.there"])
        with pytest.raises(InvalidArgument) as refusal:
            await provider.update_network(wanted)
        assert (refusal.value.details["field"], refusal.value.details["rule"]) == ("remove", "enum")
        rules = (await provider.update_network(UpdateNetworkRequest(sandbox_id=sandbox.id))).rules
        assert rules == [host.rule, "docs.example.org"]
        assert await _status(sandbox, host.url) == "200"


# -- the process on the host -------------------------------------------------------------------------------------------


async def test_the_egress_process_has_no_rights_and_ends_with_its_sandbox(folder: Path, usable: None) -> None:
    """It reads hostile bytes with the host's network: no capabilities, no state folder, no new privileges."""
    provider = make_provider(folder)
    async with opened(provider):
        pids: list[int] = []
        async with made(provider, egress=["docs.example.org"]) as sandbox:
            pids = _egress_pids(folder / "state")
            assert len(pids) == 1
            status = dict(
                line.split(":\t", 1)
                for line in Path(f"/proc/{pids[0]}/status").read_text().splitlines()
                if ":\t" in line
            )
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapInh"], 16) == 0
            assert status["NoNewPrivs"] == "1"
            assert status["Seccomp"] == "2"
            uids = {int(uid) for uid in status["Uid"].split()}
            if HOST_ROOT:
                assert len(uids) == 1
                assert 0x5FFF0000 <= uids.pop() < 0x60000000
            await provider.kill(KillRequest(sandbox_id=sandbox.id))
        for pid in pids:
            await until_gone(pid)


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user's own memory cannot be read after it gave up its rights")
@pytest.mark.parametrize("place", ["../run", ".run"])
async def test_the_egress_process_sees_no_state_of_sandboxes(folder: Path, usable: None, place: str) -> None:
    """Tokens and sockets of every sandbox lie in the state and runtime folders."""
    provider = make_provider(folder, local_runtime_dir=str(folder / "state" / place))
    async with opened(provider), made(provider, egress=[]):
        (pid,) = _egress_pids(folder / "state")
        for path in (folder / "state", folder / "state" / place):
            assert os.listdir(path) != []
            inside = Path(f"/proc/{pid}/root{path}")
            assert not inside.exists() or os.listdir(inside) == []


async def test_a_keeper_that_is_killed_takes_its_egress_process_along(folder: Path, usable: None) -> None:
    """Nothing runs on when everything else was killed."""
    provider = make_provider(folder)
    async with opened(provider), made(provider, egress=[]) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        (pid,) = _egress_pids(folder / "state")
        os.kill(int(facts["keeper_pid"]), 9)
        await until_gone(pid)
        await until_gone(int(facts["keeper_pid"]))


async def test_sandboxes_with_a_list_leave_nothing_behind(folder: Path, usable: None, host: Host) -> None:
    """Created and killed: no process, no descriptor of the zygote, no mount is left."""
    provider = make_provider(folder)
    async with opened(provider):
        counts: list[int] = []
        zygote = 0
        for _ in range(6):
            async with made(provider, egress=[host.rule]) as sandbox:
                assert await _status(sandbox, host.url) == "200"
                (pid,) = _egress_pids(folder / "state")
                zygote = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                await provider.kill(KillRequest(sandbox_id=sandbox.id))
            await until_gone(pid)
            counts.append(len(os.listdir(f"/proc/{zygote}/fd")))
        # A spare keeper that is being made holds one more, and what the zygote practises holds some for a moment.
        with anyio.fail_after(20):
            while len(os.listdir(f"/proc/{zygote}/fd")) > min(counts) + 1:
                await anyio.sleep(0.05)
        assert _egress_pids(folder / "state") == []


async def test_without_its_egress_process_a_sandbox_reaches_nothing(folder: Path, usable: None, host: Host) -> None:
    """Fail closed: the way out ends with the process, and the sandbox itself lives on."""
    async with _sandbox(folder, [host.rule]) as sandbox:
        (pid,) = _egress_pids(folder / "state")
        os.kill(pid, 9)
        await until_gone(pid)
        assert await _status(sandbox, host.url) == "000"
        assert host.requests == 0


async def test_pip_installs_through_the_allowlist(folder: Path, usable: None) -> None:
    """Issue 3: pip install works through it where the host can reach an index."""
    known: Any = pytest.importorskip("pip._internal.models.index").PyPI
    index: str = os.environ.get("PIP_INDEX_URL") or known.simple_url
    names: list[str] = [urlsplit(index).hostname or "", *([known.file_storage_domain] if known.netloc in index else [])]
    try:
        rules = [rule for name in names for rule in await _rules_of(name, urlsplit(index).port or 443)]
    except (OSError, TimeoutError):
        pytest.skip("this host does not reach a package index itself")
    # A mirror's certificate may be signed by an authority of the host's own; those are visible inside.
    authority = os.environ.get("PIP_CERT", "")
    cert = f"--cert {authority}" if authority.startswith("/etc/ssl/certs/") else ""
    install = (
        "python3 -m venv /tmp/v && /tmp/v/bin/python -m pip --isolated install --quiet --disable-pip-version-check "
        f"--no-deps --index-url {index} {cert} iniconfig && /tmp/v/bin/python -c 'import iniconfig; print(1)'"
    )
    async with _sandbox(folder, rules) as sandbox:
        ran = await sandbox.run(install, timeout_s=100)
        assert ran.stdout == "1\n", (ran.stderr[-2000:], ran.denied)
    async with _sandbox(folder, []) as sandbox:
        ran = await sandbox.run(install.replace("install ", "install --retries 0 "), timeout_s=100)
        assert ran.exit_code != 0
        assert ran.denied == [{"target": f"{names[0]}:443", "rule": names[0]}]


async def _rules_of(name: str, port: int) -> list[str]:
    """The rules that `name` needs: an index at an address that is not public needs one for the address, too."""
    async with asyncio.timeout(5):
        _reader, writer = await asyncio.open_connection(name, port)
    address = ip_address(writer.get_extra_info("peername")[0])
    writer.close()
    texts = [name] if is_ordinary(address) else [name, str(address)]
    return texts if port in (80, 443) else [f"{text}:{port}" for text in texts]
