"""What a sandbox changed, as its keeper tells: compared with the template, whatever user code does to hide it."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cloche_contract.errors import InvalidArgument, SandboxNotFound
from cloche_contract.provider import DiffEntry, DiffRequest, DiffResult, KillRequest
from cloche_local import changes
from cloche_local.provider import LocalProvider
from cloche_local.spec import Limits
from tests.packages.local.ordinary import missing, run_as_user, system_python
from tests.packages.local.sandboxes import HOST_ROOT, Sandbox, made, make_provider, opened


async def _diff(provider: LocalProvider, sandbox: Sandbox, **fields: Any) -> DiffResult:
    return await provider.diff(DiffRequest(sandbox_id=sandbox.id, **fields))


async def _entries(provider: LocalProvider, sandbox: Sandbox) -> Mapping[str, DiffEntry]:
    found = await _diff(provider, sandbox)
    assert (found.next, found.incomplete) == (None, [])
    return {entry.path: entry for entry in found.entries}


async def test_w8_the_whole_layer_is_told_and_nothing_else(provider: LocalProvider, sandbox: Sandbox) -> None:
    """W8: what did the agent change? Not only tracked files: everywhere that can be written."""
    assert await _entries(provider, sandbox) == {}
    await sandbox.run(
        "echo hi >/home/user/a; mkdir -p /app/d/e; echo x >/app/d/e/f; >/tmp/t; >/dev/shm/s; chmod 700 /app"
    )
    found = await _entries(provider, sandbox)
    told = {path: (entry.change, entry.kind, entry.size) for path, entry in found.items()}
    assert told == {
        "/app": ("modified", "directory", 0),
        "/app/d": ("added", "directory", 0),
        "/app/d/e": ("added", "directory", 0),
        "/app/d/e/f": ("added", "file", 2),
        "/dev/shm/s": ("added", "file", 0),
        "/home/user/a": ("added", "file", 3),
        "/tmp/t": ("added", "file", 0),
    }
    assert (found["/app"].changed, found["/app"].mode, found["/app"].uid) == (["mode"], "700", 1000)
    assert found["/app"].before is not None
    assert found["/app"].before.mode == "755"


async def test_w8_what_is_read_only_is_named_as_not_included(provider: LocalProvider, sandbox: Sandbox) -> None:
    """Binds of the host and the kernel's own file systems cannot be changed inside; a reader must know they are out."""
    assert {"/usr", "/proc", "/dev"} <= set((await _diff(provider, sandbox)).not_included)


@pytest.mark.skipif(not HOST_ROOT, reason="root of a sandbox needs a range of ids")
async def test_w1_a_folder_that_was_deleted_and_made_again_shows_what_is_missing(
    provider: LocalProvider, sandbox: Sandbox
) -> None:
    """W1: the kernel marks such a folder as opaque; whoever ignores the mark shows files that are gone."""
    ran = await sandbox.run(
        "cd /etc; rm -r alternatives services; mkdir alternatives; >alternatives/new; chmod 600 hostname; "
        "echo more >>group; cp shells s; cat s >shells; rm s; mv hosts tables; chown 1000 passwd; ln -sf nowhere mtab",
        user="root",
    )
    assert ran.stderr == ""
    found = await _entries(provider, sandbox)
    below = {path: entry.change for path, entry in found.items() if path.startswith("/etc/alternatives/")}
    assert below.pop("/etc/alternatives/new") == "added"
    assert set(below.values()) <= {"deleted"}
    assert "/etc/alternatives" not in found
    assert (found["/etc/services"].change, found["/etc/hosts"].change) == ("deleted", "deleted")
    assert found["/etc/tables"].change == "added"
    assert found["/etc/hostname"].changed == ["mode"]
    assert found["/etc/group"].changed == ["content"]
    assert found["/etc/passwd"].changed == ["owner"]
    assert (found["/etc/mtab"].changed, found["/etc/mtab"].target) == (["target"], "nowhere")
    # Written with what was in it: copied by the kernel, and not changed.
    assert "/etc/shells" not in found


async def test_w8_links_pipes_and_odd_names_are_told_as_they_are(provider: LocalProvider, sandbox: Sandbox) -> None:
    """Names and special files are user code's choice: none is followed or opened, and none blocks."""
    await sandbox.run(
        "cd /home/user; echo 12345 >a; ln a b; ln -s /etc/passwd l; mkfifo p; >'new\nline'; "
        r">$(printf 'n\377'); ln -s $(printf '\377') odd"
    )
    found = await _diff(provider, sandbox)
    by_path = {entry.path: entry for entry in found.entries}
    assert (by_path["/home/user/a"].links, by_path["/home/user/b"].links) == (2, 2)
    assert found.added_bytes == 6
    assert (by_path["/home/user/l"].kind, by_path["/home/user/l"].target) == ("symlink", "/etc/passwd")
    assert by_path["/home/user/p"].kind == "fifo"
    assert by_path["/home/user/new\nline"].path_base64 is None
    odd = next(entry for entry in found.entries if entry.path_base64 is not None)
    assert base64.b64decode(odd.path_base64 or "") == b"/home/user/n\xff"
    assert base64.b64decode(by_path["/home/user/odd"].target_base64 or "") == b"\xff"


async def test_a_closed_folder_hides_nothing(provider: LocalProvider, sandbox: Sandbox) -> None:
    """A mode of 000 keeps the keeper of an ordinary user out unless it holds the one right that reads past it."""
    await sandbox.run("cd /home/user; mkdir -p c/d; echo x >c/d/f; chmod 000 c/d/f c/d c")
    found = await _entries(provider, sandbox)
    assert list(found) == ["/home/user/c", "/home/user/c/d", "/home/user/c/d/f"]
    assert found["/home/user/c"].mode == "0"


async def test_pages_follow_each_other_and_miss_nothing(provider: LocalProvider, sandbox: Sandbox) -> None:
    """Bounded output: a page, the place to go on, and sums over all of them."""
    await sandbox.run("cd /tmp; for i in $(seq 30); do mkdir d$i; >d$i/f; done; >/dev/shm/last")
    whole = await _diff(provider, sandbox)
    pages = [await _diff(provider, sandbox, limit=7)]
    while (after := pages[-1].next) is not None:
        pages.append(await _diff(provider, sandbox, limit=7, after=after))
    assert [entry for page in pages for entry in page.entries] == whole.entries
    assert [len(page.entries) for page in pages] == [7] * 8 + [5]
    assert {page.added for page in pages} == {61}
    names = [entry.path.split("/") for entry in whole.entries]
    assert names[:-1] == sorted(names[:-1])
    with pytest.raises(InvalidArgument) as refusal:
        await _diff(provider, sandbox, after="bm90")
    assert refusal.value.details["field"] == "after"


async def test_p6_a_tree_that_is_swapped_while_it_is_walked_leads_nowhere_else(
    provider: LocalProvider, sandbox: Sandbox
) -> None:
    """P6: a folder that turns into a link between the look and the use."""
    await sandbox.run(
        "cd /home/user; mkdir real; for i in $(seq 200); do >real/$i; done; ln -s /etc link; "
        "(while :; do mv -T real x; mv -T link real; mv -T real link; mv -T x real; done) >/dev/null 2>&1 &"
    )
    for _round in range(20):
        found = await _diff(provider, sandbox)
        assert all(entry.path.startswith("/home/user") for entry in found.entries)
        linked = [entry for entry in found.entries if entry.kind == "symlink"]
        assert all(entry.target == "/etc" for entry in linked)


async def test_a_deep_or_wide_tree_is_cut_and_says_so(
    provider: LocalProvider, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded memory of the keeper, and honest about it."""
    await sandbox.python(
        "import os\nos.chdir('/tmp')\nfor _ in range(400):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)\n"
    )
    found = await _diff(provider, sandbox, limit=10_000)
    assert found.incomplete == ["too_deep"]
    assert found.added == 255


async def test_every_name_that_a_disk_can_hold_is_counted(folder: Path, usable: None) -> None:
    """User code decides how many there are, up to the limit of inodes; what is kept of them is bounded."""
    limits = Limits(pids=64, disk_mb=8)
    async with opened(make_provider(folder, limits=limits)) as provider, made(provider) as sandbox:
        await sandbox.python(
            "import os\nos.chdir('/tmp')\ntry:\n    for i in range(5000):\n        os.mknod(f'{i:0>200}')\n"
            "except OSError:\n    pass\n"
        )
        found = await _diff(provider, sandbox, limit=3000)
        assert len(found.entries) == 3000
        assert 3000 < found.added < 5000
        assert found.next is not None


async def test_a_sandbox_that_is_gone_has_no_changes(provider: LocalProvider, sandbox: Sandbox) -> None:
    await provider.kill(KillRequest(sandbox_id=sandbox.id))
    with pytest.raises(SandboxNotFound):
        await _diff(provider, sandbox)


async def test_the_agent_asks_for_the_token_before_it_tells(sandbox: Sandbox) -> None:
    """What was changed is for the owner: user code inside has no token."""
    answer = await sandbox.client.post("/cloche/changes", content=b"{}", headers={"X-Access-Token": "x"})
    assert answer.status_code == 401


@pytest.mark.parametrize("text", ["bm90", "!", "AAAA", "Mi8v"])
def test_a_cursor_that_no_page_gave_is_refused(text: str) -> None:
    with pytest.raises(changes.BadCursor):
        changes.read_cursor(text)


def test_a_page_ends_before_it_is_too_long_to_send() -> None:
    """Names of control characters take six times their bytes in JSON."""
    page = changes.Page(10_000, None)
    for number in range(100):
        entry: dict[str, object] = {"path": "\x01" * 4096 + str(number)}
        page.add((0, (str(number).encode(),)), "added", entry)
    assert len(json.dumps(page.document())) < 1 << 20
    assert page.counts["added"] == 100
    assert page.document()["next"] is not None


@pytest.mark.skipif(not HOST_ROOT, reason="the tests run as an ordinary user already")
def test_an_ordinary_user_is_told_the_same() -> None:
    """Issue 3: as root and as an ordinary user."""
    if lacking := missing():
        pytest.skip(lacking)
    with tempfile.TemporaryDirectory(prefix="cl-user-") as home:
        command = [system_python() or "", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
        done = run_as_user(command, home)
    if "Permission denied" in done.stderr and done.returncode == 4:
        pytest.skip("an ordinary user may not read this copy of the repository")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "this machine cannot" not in done.stdout
