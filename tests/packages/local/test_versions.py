"""State folders of every version: what was written once is read for good, and what cannot be read is left alone.

`golden/` holds folders as versions wrote them. `v1` is made by the keeper today: a test compares the two.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cloche_contract.errors import SandboxIncompatible, SandboxNotFound
from cloche_contract.provider import (
    ConnectRequest,
    DiffRequest,
    GetRequest,
    InspectRequest,
    KillRequest,
    ListRequest,
    SetTimeoutRequest,
)
from cloche_local.provider import LocalProvider
from cloche_local.state import RECORD_VERSION, StateFolder, Unreadable, try_lock
from tests.packages.local.sandboxes import Sandbox, made, make_provider

GOLDEN = Path(__file__).with_name("golden")
SANDBOXES = sorted(path.name for path in GOLDEN.iterdir())


@contextmanager
def _alive(folder: Path, *names: str) -> Generator[LocalProvider]:
    """A provider over copies of golden folders whose locks are held, as their keepers would."""
    provider = make_provider(folder)
    state = StateFolder(str(folder / "state"))
    state.ensure()
    with ExitStack() as locks:
        for name in names:
            copy = shutil.copytree(GOLDEN / name, folder / "state" / name)
            deadline = copy / "deadline"
            if deadline.stat().st_size:
                left = {"boot": time.clock_gettime(time.CLOCK_BOOTTIME) + 60, "wall": time.time() + 60}
                deadline.write_text(json.dumps(left))
            assert locks.enter_context(try_lock(str(copy / "lock")))
        yield provider


async def test_a_record_of_version_1_is_read_as_it_was_written(folder: Path) -> None:
    """Issue 3, part 7: v1 as it is written today, and as it was before there were the newest fields."""
    with _alive(folder, "first1", "today1") as provider:
        found = {record.sandbox_id: record for record in (await provider.list(ListRequest())).sandboxes}
        assert set(found) == {"first1", "today1"}
        first = found["first1"]
        assert (first.template, first.status, first.disk_size_mb, first.lifecycle) == ("base", "running", 1024, {})
        assert found["today1"].user_metadata == {"project": "alpha"}
        connected = await provider.connect(ConnectRequest(sandbox_id="first1"))
        assert connected.agent is not None
        assert connected.agent.version == "1"


async def test_the_golden_record_of_today_has_the_fields_that_a_keeper_writes(folder: Path, sandbox: Sandbox) -> None:
    """A field that is added, renamed or dropped shows here: then the version moves, or a reader must do without it."""
    written = json.loads((folder / "state" / sandbox.id / "record.json").read_text())
    golden = json.loads((GOLDEN / "today1" / "record.json").read_text())
    assert sorted(written) == sorted(golden)
    assert written["version"] == golden["version"] == RECORD_VERSION
    assert {path.name for path in (folder / "state" / sandbox.id).iterdir()} >= {
        path.name for path in (GOLDEN / "today1").iterdir()
    }


@pytest.mark.parametrize(
    ("name", "problem", "status"),
    [("newer2", "newer", "running"), ("older0", "older", "running"), ("damaged", "damaged", "error")],
)
async def test_what_this_version_cannot_read_is_listed_and_refused_with_the_reason(
    folder: Path, name: str, problem: str, status: str
) -> None:
    """Issue 3, part 7: no crash, no guess; every use says what is wrong and what to do."""
    with _alive(folder, "today1", name) as provider:
        listed = {record.sandbox_id: record for record in (await provider.list(ListRequest())).sandboxes}
        assert (listed[name].status, listed[name].template) == (status, None)
        assert listed[name].lifecycle == {"problem": problem}
        assert "today1" in listed
        for call in (
            provider.get(GetRequest(sandbox_id=name)),
            provider.connect(ConnectRequest(sandbox_id=name)),
            provider.inspect(InspectRequest(sandbox_id=name)),
            provider.diff(DiffRequest(sandbox_id=name)),
            provider.set_timeout(SetTimeoutRequest(sandbox_id=name, timeout=60)),
            provider.kill(KillRequest(sandbox_id=name)),
        ):
            with pytest.raises(SandboxIncompatible) as refusal:
                await call
            assert refusal.value.details == {"problem": problem}
        assert "timeout" in refusal.value.suggestion
        assert (folder / "state" / name / "record.json").exists()


async def test_a_sandbox_in_the_making_or_half_written_is_not_shown(folder: Path) -> None:
    """Its record may be half a line; its deadline is written last, when it can be used."""
    with _alive(folder, "making") as provider:
        assert (await provider.list(ListRequest())).sandboxes == []
        assert (folder / "state" / "making").exists()


@pytest.mark.parametrize("name", SANDBOXES)
async def test_every_dead_folder_is_swept_whoever_wrote_it(folder: Path, name: str) -> None:
    """L8: by its lock, not by what it says about itself."""
    with _alive(folder, name):
        pass
    provider = make_provider(folder)
    assert (await provider.list(ListRequest())).sandboxes == []
    assert not (folder / "state" / name).exists()


async def test_a_sandbox_that_a_newer_program_made_can_still_be_ended(folder: Path, provider: LocalProvider) -> None:
    """Every version keeps its socket at one place and takes the request to end: nobody needs the other program."""
    async with made(provider) as sandbox:
        path = folder / "state" / sandbox.id / "record.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "version": RECORD_VERSION + 1}))
        with pytest.raises(SandboxIncompatible):
            await provider.get(GetRequest(sandbox_id=sandbox.id))
        await provider.kill(KillRequest(sandbox_id=sandbox.id))
        assert not path.exists()
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=sandbox.id))


async def test_an_agent_of_another_protocol_is_refused_and_not_talked_to(folder: Path, sandbox: Sandbox) -> None:
    """The program was upgraded while sandboxes lived: what both sides do not speak is told before the first request."""
    path = folder / "state" / sandbox.id / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "agent_protocol": "2"}))
    provider = make_provider(folder)
    assert (await provider.get(GetRequest(sandbox_id=sandbox.id))).status == "running"
    with pytest.raises(SandboxIncompatible) as refusal:
        await provider.connect(ConnectRequest(sandbox_id=sandbox.id))
    assert refusal.value.details == {"problem": "newer"}


def test_a_damaged_record_names_itself(folder: Path) -> None:
    """What a reader of the state gets: an exception that says what is wrong."""
    with _alive(folder, "damaged"), pytest.raises(Unreadable) as told:
        StateFolder(str(folder / "state")).read("damaged")
    assert told.value.problem == "damaged"
