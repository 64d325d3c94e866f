"""What code inside sees: its environment, files, devices and descriptors. By fault id where there is one."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from cloche_contract.provider import InspectRequest
from cloche_local import templates
from cloche_local.provider import LocalProvider
from cloche_local.spec import Protections
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened


async def test_e1_the_servers_environment_is_not_inside(
    folder: Path, usable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults E1: an empty base and what was asked for, in commands and in the interpreter."""
    monkeypatch.setenv("ABX_SANDBOX_API_KEY", "marker-api-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marker-aws")
    async with opened(make_provider(folder)) as provider, made(provider, envs={"ASKED": "for"}) as sandbox:
        inside = (await sandbox.run("env")).stdout
        lines = await sandbox.execute("import os\nprint(dict(os.environ))")
        for text in (inside, str(lines)):
            assert "marker" not in text
            assert "ASKED" in text
        names = {line.split("=")[0] for line in inside.splitlines()}
        assert names <= {
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "ASKED",
            "PWD",
            "LANG",
            "LC_ALL",
            "PYTHONIOENCODING",
            "SHLVL",
            "_",
            "TMPDIR",
            "OLDPWD",
        } | {name for name in names if name.startswith("CLOCHE_")}


async def test_etc_is_an_allowlist(shared_sandbox: Sandbox) -> None:
    """local-runtime, Mounts: the skeleton's /etc is an allowlist; nothing names the host or its users."""
    listed = (await shared_sandbox.run("ls -1 /etc")).stdout.split()
    assert "shadow" not in listed
    assert "ssh" not in listed
    assert "machine-id" not in listed
    passwd = (await shared_sandbox.run("cat /etc/passwd")).stdout
    assert [line.split(":")[0] for line in passwd.splitlines()] == ["root", "user", "nobody"]
    assert (await shared_sandbox.run("hostname; cat /etc/hostname; whoami")).stdout.split() == [
        "sandbox",
        "sandbox",
        "user",
    ]


async def test_programs_find_the_fonts_of_the_machine(shared_sandbox: Sandbox) -> None:
    """A figure is drawn without a complaint: fontconfig's settings are in the allowlist, where the host has them."""
    settings = Path("/etc/fonts/fonts.conf")
    inside = await shared_sandbox.run(f"cat {settings}")
    assert inside.stdout == (settings.read_text() if settings.exists() else "")


async def test_nothing_of_the_host_is_writable(shared_sandbox: Sandbox) -> None:
    """local-runtime, Mounts: /usr, the Python prefix and the certificates are read-only binds."""
    mounts = (await shared_sandbox.run("cat /proc/self/mountinfo")).stdout.splitlines()
    writable = [line.split()[4] for line in mounts if "rw" in line.split()[5].split(",")]
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "pts", "shm")}
    assert (
        set(writable)
        <= {"/", "/proc", "/proc/keys", "/proc/kcore", "/proc/timer_list", "/proc/sysrq-trigger"} | devices
    )


async def test_a_program_inherits_its_three_descriptors_only(shared_sandbox: Sandbox) -> None:
    """Escape battery, inherited descriptors: commands have stdio, interpreters their channel besides."""
    ran = await shared_sandbox.python("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))")
    assert ran.stdout.strip() == "[0, 1, 2, 3]"  # 3 is the listing itself
    code = """
import os
paths = ["/proc/self/fd/" + fd for fd in os.listdir("/proc/self/fd")]
kinds = [os.readlink(path) for path in paths if os.path.exists(path)]
files = [kind for kind in kinds if kind.startswith("/") and not kind.startswith(("/dev/", "/proc/"))]
print(sum(kind.startswith("socket") for kind in kinds), files)
"""
    lines = await shared_sandbox.execute(code)
    text = "".join(str(line.get("text", "")) for line in lines if line["type"] == "stdout")
    assert text.strip() == "1 []"


@pytest.mark.parametrize("on", [True, False])
async def test_init_has_no_descriptor_of_the_zygote(folder: Path, usable: None, on: bool) -> None:
    """The protection bites: without it init still holds the zygote's control socket."""
    # Readable from outside only where init is dumpable.
    protections = Protections(close_descriptors=on, non_dumpable=False)
    async with opened(make_provider(folder, protections=protections)) as provider, made(provider) as sandbox:
        facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
        held = [os.readlink(path) for path in Path(f"/proc/{facts['init_pid']}/fd").iterdir()]
        sockets = [name for name in held if name.startswith("socket:")]
        # With it: the link to its keeper and no other.
        assert (len(sockets) == 1) is on
        assert not any("/state/" in name for name in held)


@pytest.mark.skipif(not HOST_ROOT, reason="only the host's root may look at the descriptors of a keeper")
async def test_no_folder_that_the_keeper_holds_leads_out(provider: LocalProvider, sandbox: Sandbox) -> None:
    """security.md, runc: a folder of the host that is left open leads to all of it by `..`."""
    assert Path("/sys/fs/cgroup").is_dir()
    facts = (await provider.inspect(InspectRequest(sandbox_id=sandbox.id))).facts
    for pid in (facts["keeper_pid"], facts["init_pid"]):
        for held in Path(f"/proc/{pid}/fd").iterdir():
            if held.is_dir():
                assert not Path(held, *[".."] * 20, "sys/fs/cgroup").exists(), held.readlink()


async def test_python_of_commands_and_of_the_interpreter_are_one(shared_sandbox: Sandbox) -> None:
    """local-runtime, Templates: the host's own Python."""
    version = (await shared_sandbox.python("import sys; print(sys.version)")).stdout.strip()
    lines = await shared_sandbox.execute("import sys; print(sys.version)")
    assert version in "".join(str(line.get("text", "")) for line in lines)
    assert (await shared_sandbox.run("command -v python3; command -v python")).stdout.split() == [
        "/opt/venv/bin/python3",
        "/opt/venv/bin/python",
    ]


async def test_nothing_of_ours_is_imported_after_the_root_is_switched(shared_sandbox: Sandbox) -> None:
    """local-runtime, Processes: our folders are not there inside, and not on the path."""
    lines = await shared_sandbox.execute(
        "import sys, os; print([path for path in sys.path if path and not os.path.exists(path)])"
    )
    text = "".join(str(line.get("text", "")) for line in lines if line["type"] == "stdout").strip()
    assert [path for path in eval(text) if not path.endswith(".zip")] == []


@pytest.fixture
async def interpreter(provider: LocalProvider) -> AsyncGenerator[Sandbox]:
    found = templates.find_template(templates.CODE_INTERPRETER)
    if found is None or found.missing:
        pytest.skip("numpy, pandas or matplotlib is not installed beside Cloche")
    async with made(provider, template=templates.CODE_INTERPRETER) as sandbox:
        yield sandbox


async def test_the_code_interpreter_has_its_libraries(interpreter: Sandbox) -> None:
    """local-runtime, Templates: from the bare stage, and in programs."""
    lines = await interpreter.execute(
        "import numpy, pandas, matplotlib; print(numpy.arange(3).sum())", timeout_ms=30000
    )
    assert "3\n" in [line.get("text") for line in lines], lines
    ran = await interpreter.python("import numpy; print(numpy.arange(4).sum())")
    assert ran.stdout == "6\n", ran.stderr


async def test_warm_sandboxes_have_their_own_random_numbers(provider: LocalProvider) -> None:
    """local-runtime, Processes: 100 forks otherwise share one numpy.random value [ran]."""
    found = templates.find_template(templates.CODE_INTERPRETER)
    if found is None or found.missing:
        pytest.skip("numpy, pandas or matplotlib is not installed beside Cloche")
    await provider.warm()
    values: set[str] = set()
    for _ in range(3):
        async with made(provider, template=templates.CODE_INTERPRETER) as sandbox:
            lines = await sandbox.execute("import random, numpy; print(random.random(), numpy.random.rand())")
            values.add("".join(str(line.get("text", "")) for line in lines if line["type"] == "stdout"))
    assert len(values) == 3


@pytest.mark.skipif(not HOST_ROOT, reason="an ordinary user maps one id: the sandbox has no root")
async def test_root_on_request_has_seven_capabilities(sandbox: Sandbox) -> None:
    """local-runtime, Users: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, KILL and no other."""
    ran = await sandbox.run(
        "id -u; grep CapEff /proc/self/status; touch /etc/new && chown 5:6 /etc/new && stat -c %u:%g /etc/new",
        user="root",
    )
    assert ran.stdout.split() == ["0", "CapEff:", "00000000000000fb", "5:6"]
    assert (await sandbox.run("kill -0 1", user="root")).exit_code == 0


@pytest.mark.skipif(HOST_ROOT, reason="root maps a range")
async def test_an_ordinary_user_has_no_root_inside(sandbox: Sandbox) -> None:
    """Capability `users: single`: asked for root, the agent says that there is no such user."""
    ran = await sandbox.run("id", user="root")
    assert ran.error["code"] == "unauthenticated"
