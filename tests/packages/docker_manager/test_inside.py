"""What users of sandboxes meet inside one on a real engine: one sandbox for all of these tests."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx
import pytest

from cloche_agentd._gen import wire
from cloche_docker_manager.registry import Record
from tests.docker_engine import PYTHON, TestEngine
from tests.packages.docker_manager.conftest import manager_environ
from tests.packages.docker_manager.managed import Tools, opened, registry_of, run


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For the fixture of the module."""
    return "asyncio"


@pytest.fixture(scope="module")
async def sandbox(
    docker_with_images: TestEngine, shared_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[tuple[Record, Tools]]:
    """A sandbox, and the tools that made it."""
    folder = tmp_path_factory.mktemp("inside")
    project = folder / "workspaces/project"
    project.mkdir(parents=True)
    (project / "file").write_text("content\n")
    environ = manager_environ(docker_with_images.url, folder, shared_cache)
    async with opened(environ) as tools:
        made = await tools.ok("create_sandbox", image=PYTHON, workspace_root=str(project))
        yield registry_of(environ).get(made["id"]), tools


async def test_l19_a_sandbox_is_handed_out_only_when_it_answers(sandbox: tuple[Record, Tools]) -> None:
    """Fault L19; checklist 243: the first command after create works, without another try."""
    assert (await run(sandbox[0], "cat file"))["stdout"] == "content\n"


async def test_t1_t2_what_a_timed_out_command_started_is_gone(sandbox: tuple[Record, Tools]) -> None:
    """Faults T1, T2 in a container: the whole tree, found by what runs; the output so far is there."""
    done = await run(sandbox[0], "echo begun; sleep 98761 & sleep 98762", timeout_s=0.5)
    assert done["stdout"] == "begun\n"
    assert (await run(sandbox[0], "cat /proc/[0-9]*/cmdline"))["stdout"].count("9876") == 0


async def test_t6_a_command_that_leaves_a_job_returns_at_once(sandbox: tuple[Record, Tools]) -> None:
    """Fault T6 in a container: not after the job."""
    with anyio.fail_after(30):
        done = await run(sandbox[0], "sleep 98763 & echo back")
    assert (done["stdout"], done["exitCode"]) == ("back\n", 0)


async def test_t32_a_command_reaches_one_shell_as_it_was_written(sandbox: tuple[Record, Tools]) -> None:
    """Fault T32 in a container: separators, quotes, here-documents and expansions."""
    command = "a=1 && { echo \"$a;\" '&'; } ; cat <<'X' | cat\n$a `b` \\\nX\necho $((2 > 1)) && (exit 0) || echo no"
    assert (await run(sandbox[0], command))["stdout"] == "1; &\n$a `b` \\\n1\n"


async def test_t35_a_signal_to_a_process_that_has_ended_reaches_nobody(sandbox: tuple[Record, Tools]) -> None:
    """Fault T35 in a container: its number may be another one's by now."""
    record = sandbox[0]
    pid = int((await run(record, "echo $$"))["stdout"])
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{record.agent_port}", trust_env=False) as client:
        message = {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}
        answer = await client.post(wire.PROCESS_SEND_SIGNAL, json=message, headers={"X-Access-Token": record.token})
    assert answer.status_code == 404
    assert (await run(record, "echo alive"))["stdout"] == "alive\n"


async def test_o14_o17_both_streams_stay_apart_and_text_is_utf_8(sandbox: tuple[Record, Tools]) -> None:
    """Faults O14, O17 in an image without a locale."""
    done = await run(sandbox[0], """python3 -c 'import sys; print("☹"); print("é", file=sys.stderr)'""")
    assert (done["stdout"], done["stderr"], done["exitCode"]) == ("☹\n", "é\n", 0)


async def test_f29_programs_may_write_where_they_expect_to(sandbox: tuple[Record, Tools]) -> None:
    """Fault F29: the project, the folder for temporary files, and the home."""
    done = await run(sandbox[0], 'for each in . /tmp /var/tmp "$HOME"; do echo x >"$each/written" && echo ok; done')
    assert done["stdout"] == "ok\n" * 4


async def test_f1_f16_f25_any_name_and_any_bytes_reach_the_host_and_belong_to_the_caller(
    sandbox: tuple[Record, Tools], tmp_path: Path
) -> None:
    """Faults F1, F16, F25: written by root inside, owned by whoever runs the manager outside."""
    names = ["😀.txt", "résumé.pdf", '"a b".txt', "-rf", "new\nline"]
    write = "import os, sys; os.mkdir('odd'); os.chdir('odd'); os.symlink('x', 'link')"
    write += "; [open(name, 'wb').write(bytes(range(256))) for name in sys.argv[1:]]"
    done = await run(sandbox[0], shlex.join(["python3", "-c", write, *names]))
    assert done["exitCode"] == 0, done
    await sandbox[1].ok("export_changes", sandbox_id=sandbox[0].id, dest=str(tmp_path / "out"))
    odd = tmp_path / "out/odd"
    assert sorted(os.listdir(odd)) == sorted([*names, "link"])
    assert {(odd / name).read_bytes() for name in names} == {bytes(range(256))}
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in (odd, *odd.iterdir())}
    assert owners == {(os.geteuid(), os.getegid())}


async def test_every_sandbox_demands_its_own_token(sandbox: tuple[Record, Tools]) -> None:
    """Checklist 334: both published ports, no token and a wrong one."""
    record = sandbox[0]
    for port, path in ((record.agent_port, wire.LAYERS_STATUS), (record.interpreter_port, "/execute")):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            for headers in ({}, {"X-Access-Token": "x" * 43}):
                assert (await client.post(path, json={}, headers=headers)).status_code == 401


async def test_l28_no_image_is_made_or_changed(sandbox: tuple[Record, Tools], docker_with_images: TestEngine) -> None:
    """Fault L28: what a sandbox changed is in its layers, never in an image."""
    before = {one["Id"] for one in docker_with_images.api.images(all=True)}
    await run(sandbox[0], "echo changed >file; echo x >/etc/changed")
    await sandbox[1].ok("squash_layerstacks", sandbox_id=sandbox[0].id)
    assert {one["Id"] for one in docker_with_images.api.images(all=True)} == before


async def test_no_module_is_compiled_while_a_sandbox_starts(sandbox: tuple[Record, Tools], shared_cache: Path) -> None:
    """Issue 7, create against `docker run`: what is delivered is read-only, so it comes compiled."""
    delivered = shared_cache / "runtimes"
    tag = sys.implementation.cache_tag
    sources = [path for path in delivered.glob("agent-*/**/*.py") if path.name != "__main__.py"]
    sources += delivered.glob("python-*/lib/python3*/asyncio/*.py")
    assert len(sources) > 80
    compiled = [path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc" for path in sources]
    assert [path for path in compiled if not path.exists()] == []
