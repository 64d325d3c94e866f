"""Making sandboxes on a real engine: what they are, what they may do, and that half of one is never left."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from cloche_contract.errors import ProviderFailed
from cloche_docker_manager.create import Creation
from cloche_docker_manager.engine import Engine
from tests.docker_engine import BUSYBOX, PYTHON
from tests.packages.docker_manager.conftest import Bench
from tests.packages.docker_manager.managed import Heard, objects_of, opened, registry_of, run


@pytest.fixture
def workspace(bench: Bench) -> Path:
    """A small project."""
    folder = bench.workspaces / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.py").write_text("print('hello')\n")
    (folder / "README").write_text("read me\n")
    return folder


@pytest.mark.parametrize("image", [BUSYBOX, PYTHON])
async def test_a_sandbox_of_any_image_is_ready_with_endpoints_and_base(
    bench: Bench, workspace: Path, image: str
) -> None:
    """Checklist 238, 240 to 245, 248, 250, 251: agent and Python are delivered; the image needs neither."""
    heard = Heard()
    async with opened(bench.environ) as tools:
        made = (await tools.outcome("create_sandbox", heard, image=image, workspace_root=str(workspace))).structured
        assert made["state"] == "ready"
        assert made["workspace_root"] == str(workspace)
        assert {made["daemon"]["host"], made["daemon_http"]["host"]} == {"127.0.0.1"}
        assert made["shared_base"]["readonly"] is True
        assert set(made) == {"id", "workspace_root", "state", "daemon", "daemon_http", "shared_base"}
        assert [progress for progress, _text in heard.told] == sorted(progress for progress, _text in heard.told) != []
        record = registry_of(bench.environ).get(made["id"])
        assert (await run(record, "cat README; id -u; echo mine >README; cat README"))["stdout"] == "read me\n0\nmine\n"
        assert (await run(record, "cat README"))["stdout"] == "mine\n"
        assert (workspace / "README").read_text() == "read me\n"
        assert await _python(record.agent_port, record.token, "import ssl, sqlite3; print(6 * 7)") == "42\n"


async def _python(port: int | None, token: str, code: str) -> str:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        answer = await client.post("/execute", json={"code": code}, headers={"X-Access-Token": token}, timeout=60)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    return "".join(line["text"] for line in lines if line["type"] == "stdout")


async def test_the_container_has_exactly_the_rights_that_are_documented(bench: Bench, workspace: Path) -> None:
    """Issue 7: capabilities, user, seccomp, limits, mounts and ports; not privileged, and no socket of the engine."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record = registry_of(bench.environ).get(made["id"])
        facts = bench.engine.api.inspect_container(record.container)
        host = facts["HostConfig"]
        assert (host["Privileged"], host["CapDrop"], host["CapAdd"]) == (False, ["ALL"], AGENT_ALONE)
        assert facts["Config"]["User"] == "0:0"
        assert host["SecurityOpt"][0] == "no-new-privileges:true"
        profile = json.loads(host["SecurityOpt"][1].removeprefix("seccomp="))
        assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
        assert len(host["SecurityOpt"]) == 2
        assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (512 << 20, 512 << 20, 1_000_000_000)
        assert (host["PidsLimit"], host["OomScoreAdj"], host["IpcMode"]) == (256, 500, "private")
        assert (host["PidMode"], host["UTSMode"], host["Devices"] or []) == ("", "", [])
        assert host["RestartPolicy"]["Name"] == "no"
        mounts = {one["Destination"]: one["RW"] for one in facts["Mounts"]}
        assert {target for target, writable in mounts.items() if writable} == {"/cloche/store"}
        assert set(mounts) == {"/workspace", "/cloche/base", "/cloche/python", "/cloche/agent", "/cloche/store"}
        assert not any("sock" in one["Source"] for one in facts["Mounts"])
        ports = [bound for one in facts["NetworkSettings"]["Ports"].values() for bound in one or ()]
        assert {one["HostIp"] for one in ports} == {"127.0.0.1"}
        assert sorted(facts["NetworkSettings"]["Ports"]) == ["49983/tcp", "49999/tcp"]


async def test_e1_e3_e4_no_secret_is_in_the_engine_or_in_the_environment_inside(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults E1, E3, E4: neither the manager's variables nor the token, in labels, arguments, files or /proc."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-marker-of-the-host")
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record = registry_of(bench.environ).get(made["id"])
        assert record.token not in json.dumps(made)
        assert record.token not in json.dumps(bench.engine.api.inspect_container(record.container))
        assert record.token not in bench.engine.api.logs(record.container).decode()
        assert ".cloche-boot" not in (await run(record, "ls -a /"))["stdout"]
        done = await run(record, "env; cat /proc/*/environ /proc/*/cmdline; grep -r marker /etc /root /tmp")
        assert record.token not in done["stdout"]
        assert "marker-of-the-host" not in done["stdout"]


async def test_user_code_has_no_capability_and_sees_no_process_but_its_own(bench: Bench, workspace: Path) -> None:
    """Docker.md of the design: user commands run with every capability dropped; the agent is out of reach."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record = registry_of(bench.environ).get(made["id"])
        tried = (
            "grep -E 'Cap(Prm|Eff|Inh|Amb)|NoNewPrivs' /proc/self/status | tr -d '\\t\\n'; echo; "
            "unshare -U true || echo no-user-namespace; mount -t tmpfs x /tmp || echo no-mount; "
            "echo x >/proc/sys/kernel/core_pattern || echo no-sysctl; echo b >/proc/sysrq-trigger || echo no-sysrq; "
            "cat /proc/1/environ || echo no-look; kill -9 1; chroot / true || echo no-chroot; "
            "cat /proc/kcore >/dev/null; mknod /tmp/d b 8 0 || echo no-device; ls /proc | grep -c '^[0-9]'"
        )
        done = await run(record, f"({tried}) 2>/dev/null")
        lines = done["stdout"].split()
        zero = "0" * 16
        assert lines[0] == f"CapInh:{zero}CapPrm:{zero}CapEff:{zero}CapAmb:{zero}NoNewPrivs:1"
        no = {"no-user-namespace", "no-mount", "no-sysctl", "no-look", "no-chroot", "no-device"}
        assert no <= set(lines)
        assert int(lines[-1]) < 8
        assert (await run(record, "echo alive"))["stdout"] == "alive\n"


async def test_t4_a_command_past_its_timeout_is_killed_inside(bench: Bench, workspace: Path) -> None:
    """Fault T4: not only the client of it."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record = registry_of(bench.environ).get(made["id"])
        done = await run(record, "echo begun; sleep 9999 & sleep 9999", timeout_s=0.5)
        assert done["stdout"] == "begun\n"
        assert (await run(record, "ps | grep -c '[s]leep 9999'"))["stdout"] == "0\n"


async def test_t36_a_fork_bomb_stops_at_the_process_limit(bench: Bench, workspace: Path) -> None:
    """Fault T36: the host stays usable, and so does the sandbox."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record = registry_of(bench.environ).get(made["id"])
        many = "i=0; while [ $i -lt 400 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; echo $i"
        done = await run(record, many, timeout_s=20)
        assert done.get("exitCode") != 0 or done["stdout"] != "400\n"
        assert (await run(record, "echo usable"))["stdout"] == "usable\n"


async def test_l13_several_sandboxes_share_one_base_and_have_ports_of_their_own(bench: Bench, workspace: Path) -> None:
    """Checklist 246, 249; fault L13: the engine chooses the ports."""
    async with opened(bench.environ) as tools, opened(bench.environ) as others, anyio.create_task_group() as both:
        made: list[dict[str, Any]] = []

        async def create(which: Any, count: int) -> None:
            found = await which.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace), count=count)
            made.extend(found.get("sandboxes", [found]))

        both.start_soon(create, tools, 2)
        both.start_soon(create, others, 1)
        with anyio.fail_after(120):
            while len(made) < 3:
                await anyio.lowlevel.checkpoint()
        ports = [one[key]["port"] for one in made for key in ("daemon", "daemon_http")]
        assert len(set(ports)) == 6
        assert len({one["shared_base"]["root_hash"] for one in made}) == 1
        assert len({one["shared_base"]["source"] for one in made}) == 1
        listed = await tools.ok("list_sandboxes")
        assert listed["sandboxes"] == sorted(made, key=lambda one: one["id"])
        assert await tools.ok("inspect_sandbox", sandbox_id=made[0]["id"]) == made[0]


AGENT_ALONE = ["DAC_OVERRIDE", "SYS_ADMIN"]
STEPS = ("ensure_network", "create_volume", "create_container", "put_file", "start", "inspect")


@pytest.mark.parametrize("step", STEPS)
async def test_l2_a_failure_at_any_step_leaves_nothing_of_the_batch(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Checklist 247, 338; fault L2: the second of two fails, both are gone, and the error is the first one."""
    real, calls = getattr(Engine, step), 0

    def failing(engine: Engine, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= 2:
            monkeypatch.setattr(Engine, step, real)
            raise ProviderFailed(http_status=500)
        return real(engine, *arguments)

    async with opened(bench.environ) as tools:
        await tools.ok("list_docker_images")
        monkeypatch.setattr(Engine, step, failing)
        told = await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(workspace), count=2)
        assert told == ("connection_error", "provider_failed")
        assert objects_of(bench) == set()
        assert (await tools.ok("list_sandboxes"))["sandboxes"] == []


async def test_l2_a_sandbox_that_never_gets_ready_is_rolled_back(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 243, 338: an agent that ends at its start is noticed at once."""
    monkeypatch.setattr("cloche_docker_manager.create.boot_archive", _archive_of_nothing)
    async with opened(bench.environ) as tools:
        told = await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        assert told == ("operation_failed", "sandbox_start_failed")
        assert objects_of(bench) == set()
        assert (await tools.ok("list_sandboxes"))["sandboxes"] == []


def _archive_of_nothing(*_arguments: object) -> bytes:
    return b"\0" * 10240


async def test_what_cannot_be_rolled_back_stays_visible_as_failed(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems X3: a rollback is never silent about what it left."""

    def refuse(*_arguments: object) -> None:
        raise ProviderFailed(http_status=500)

    async with opened(bench.environ) as tools:
        await tools.ok("list_docker_images")
        with monkeypatch.context() as patched:
            patched.setattr(Engine, "start", refuse)
            patched.setattr(Engine, "remove_container", refuse)
            await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        (left,) = (await tools.ok("list_sandboxes"))["sandboxes"]
        assert left["state"] == "failed"
        assert (await tools.ok("destroy_sandbox", sandbox_id=left["id"]))["state"] == "stopped"
        assert objects_of(bench) == set()


async def test_a_cancelled_creation_leaves_nothing(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Style S6: cancellation is a normal exit; what was made is removed before it is passed on."""
    waiting = anyio.Event()

    async def never_ready(*_arguments: object) -> None:
        waiting.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(Creation, "_wait_until_ready", never_ready)
    async with opened(bench.environ) as tools:
        async with anyio.create_task_group() as calls:
            calls.start_soon(tools.refused, "create_sandbox")
            calls.cancel_scope.cancel()
        async with anyio.create_task_group() as calls:

            async def create() -> None:
                await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))

            calls.start_soon(create)
            with anyio.fail_after(120):
                await waiting.wait()
            calls.cancel_scope.cancel()
        assert objects_of(bench) == set()
        assert registry_of(bench.environ).all() == []


async def test_p10_p11_a_workspace_is_a_directory_that_is_there_whatever_its_name(bench: Bench) -> None:
    """Faults P10, P11; checklist 245: no colon splits anything, and nothing is made on the host."""
    odd = bench.workspaces / "a:b:ro ö"
    odd.mkdir()
    (odd / "file").write_text("content\n")
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(odd))
        record = registry_of(bench.environ).get(made["id"])
        assert (await run(record, "cat /workspace/file /cloche/base/file"))["stdout"] == "content\ncontent\n"
        missing = bench.workspaces / "missing"
        for path in (missing, odd / "file"):
            told = await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(path))
            assert told == ("invalid_request", "workspace_not_found")
        assert not missing.exists()


async def test_e21_a_workspace_with_a_socket_in_it_is_refused(bench: Bench, workspace: Path) -> None:
    """Fault E21: the engine's socket never gets inside, by whatever folder."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"/proc/self/fd/{os.open(workspace, os.O_PATH)}/docker.sock")
    async with opened(bench.environ) as tools:
        told = await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        assert told == ("operation_failed", "base_unusable")
        assert objects_of(bench) == set()
    listening.close()


async def test_a_workspace_outside_of_the_roots_is_refused_whatever_link_leads_there(
    bench: Bench, tmp_path: Path
) -> None:
    """Checklist 337: outside refused, symlink escape refused; what the manager keeps is no workspace either."""
    (bench.workspaces / "escape").symlink_to("/etc")
    state = Path(bench.environ["ABX_DOCKER_STATE_DIR"])
    environ = {**bench.environ, "ABX_DOCKER_WORKSPACE_ROOTS": f"{bench.workspaces}:{state}"}
    async with opened(environ) as tools:
        for path in (tmp_path, bench.workspaces / "escape", bench.workspaces / "..", state, "/"):
            told = await tools.refused("create_sandbox", image=BUSYBOX, workspace_root=str(path))
            assert told == ("invalid_request", "workspace_not_allowed")
        told = await tools.refused("create_sandbox", image="nothing:latest", workspace_root=str(bench.workspaces))
        assert told == ("not_found", "image_not_found")
