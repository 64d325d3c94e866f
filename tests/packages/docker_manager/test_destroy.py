"""Removing sandboxes, and what is left of a manager that is killed while it makes or removes one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cloche_contract.errors import ProviderFailed
from cloche_docker_manager.engine import Engine
from cloche_docker_manager.owner import this_process
from tests.docker_engine import BUSYBOX
from tests.packages.docker_manager.conftest import Bench
from tests.packages.docker_manager.managed import objects_of, opened, registry_of, run

OPERATIONS = ("ensure_network", "create_volume", "create_container", "put_file", "start", "inspect")
REMOVALS = ("remove_container", "remove_volume")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def workspace(bench: Bench) -> Path:
    folder = bench.workspaces / "project"
    folder.mkdir()
    (folder / "file").write_text("content\n")
    return folder


async def test_destroy_answers_with_the_record_that_is_gone(bench: Bench, workspace: Path) -> None:
    """Checklist 262 to 264, 266: stopped in the answer, and no longer listed."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        gone = await tools.ok("destroy_sandbox", sandbox_id=made["id"])
        assert gone == {**made, "state": "stopped"}
        assert objects_of(bench) == set()
        assert (await tools.ok("list_sandboxes"))["sandboxes"] == []
        for tool in ("destroy_sandbox", "inspect_sandbox"):
            assert await tools.refused(tool, sandbox_id=made["id"]) == ("not_found", "sandbox_not_found")


async def test_what_the_engine_does_not_remove_is_kept_as_failed_and_can_be_destroyed_later(
    bench: Bench, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 265, 340."""

    def refuse(*_arguments: object) -> None:
        raise ProviderFailed(http_status=500)

    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        with monkeypatch.context() as patched:
            patched.setattr(Engine, "remove_container", refuse)
            told = await tools.refused("destroy_sandbox", sandbox_id=made["id"])
            assert told == ("operation_failed", "destroy_failed")
        assert (await tools.ok("inspect_sandbox", sandbox_id=made["id"]))["state"] == "failed"
        assert (await tools.ok("destroy_sandbox", sandbox_id=made["id"]))["state"] == "stopped"


@pytest.mark.parametrize("state", ["creating", "stopping"])
async def test_a_sandbox_that_somebody_works_on_is_not_destroyed(bench: Bench, workspace: Path, state: str) -> None:
    """Checklist 340: refused in creating and stopping."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        registry = registry_of(bench.environ)
        record = registry.get(made["id"])
        registry.put(replace(record, state=state, owner=this_process()))
        told = await tools.refused("destroy_sandbox", sandbox_id=made["id"])
        assert told == ("invalid_request", "sandbox_state_conflict")
        registry.put(record)


async def test_list_and_inspect_ask_neither_engine_nor_sandbox(bench: Bench, workspace: Path) -> None:
    """Checklist 255, 257, 259: an engine that is gone changes nothing about what is stored."""
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        nowhere = {**bench.environ, "DOCKER_HOST": f"unix://{workspace}/no.sock"}
        async with opened(nowhere) as blind:
            assert await blind.ok("list_sandboxes") == {"sandboxes": [made]}
            assert await blind.ok("inspect_sandbox", sandbox_id=made["id"]) == made
            assert await blind.refused("list_docker_images") == ("connection_error", "backend_unavailable")
            registry_of(bench.environ).put(registry_of(bench.environ).get(made["id"]))


def moments(seed: int, scale: int) -> list[tuple[str, str, str]]:
    """Before and after each step of a creation and a destruction, some of them by the seed."""
    every = [("create", step, when) for step in OPERATIONS for when in ("before", "after")]
    every += [("destroy", step, when) for step in REMOVALS for when in ("before", "after")]
    return random.Random(seed).sample(every, min(len(every), 3 * scale))


@pytest.mark.soak
async def test_l7_l10_a_manager_killed_at_any_moment_leaves_nothing_after_the_next_start(
    bench: Bench, workspace: Path, seed: int, scale: int
) -> None:
    """Faults L7, L10; issue 7: nothing unlabelled is left, and the next start reconciles."""
    for task, step, when in moments(seed, scale):
        killed = subprocess.run(
            [sys.executable, "-m", "tests.packages.docker_manager.killed", task, step, when, str(workspace)],
            env=bench.environ,
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        api = bench.engine.api
        labels = [one["Labels"] for one in (*api.containers(all=True), *(api.volumes()["Volumes"] or ()))]
        assert all("dev.cloche.sandbox" in (found or {}) for found in labels)
        async with opened(bench.environ) as tools:
            await tools.ok("list_docker_images")
            assert (await tools.ok("list_sandboxes"))["sandboxes"] == [], (task, step, when)
            assert objects_of(bench) == set(), (task, step, when)


@pytest.mark.soak
async def test_l7_a_manager_killed_while_it_squashes_or_exports_loses_and_leaves_nothing(
    bench: Bench, workspace: Path, tmp_path: Path, seed: int, scale: int
) -> None:
    """Fault L7; issue 7: the layers are whole, the sandbox works on, and the next export writes what it should."""
    choose, out = random.Random(seed), tmp_path / "out"
    async with opened(bench.environ) as tools:
        made = await tools.ok("create_sandbox", image=BUSYBOX, workspace_root=str(workspace))
        record, expected = registry_of(bench.environ).get(made["id"]), {"file"}
        for turn in range(2 * scale):
            for number in range(2):
                await run(record, f"mkdir d{turn}{number}; for i in $(seq 200); do echo $i >d{turn}{number}/$i; done")
                expected.add(f"d{turn}{number}")
            words = [("squash", "export")[turn % 2], record.id, f"{choose.uniform(0.01, 0.4):.3f}", str(out)]
            killed = subprocess.run(
                [sys.executable, "-m", "tests.packages.docker_manager.killed", *words],
                env=bench.environ,
                cwd=ROOT,
                check=False,
                capture_output=True,
                text=True,
            )
            assert killed.returncode in (0, -signal.SIGALRM), killed.stderr
            assert (await run(record, "ls"))["stdout"].split() == sorted(expected)
            await tools.ok("export_changes", sandbox_id=record.id, dest=str(out))
            assert set(os.listdir(out)) == expected - {"file"}
            assert {name: len(os.listdir(out / name)) for name in os.listdir(out)} == dict.fromkeys(
                os.listdir(out), 200
            )
            assert not [name for name in os.listdir(out.parent) if name.startswith(".cloche-")]
        assert (await tools.ok("squash_layerstacks", sandbox_id=record.id))["manifest_version"] > 1
