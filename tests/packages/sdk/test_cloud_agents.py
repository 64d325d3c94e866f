"""Sandboxes of a platform that runs an agent of its own, without what this project adds to the protocol.

Source: issue 8; decision D24.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from cloche_contract.errors import UnsupportedOperation
from cloche_sdk import AsyncSandbox
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.platform import ReferencePlatform
from cloche_testkit.scripted import ScriptedProvider
from tests.packages.sdk.platforms import doors_to

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox(unsandboxed_plane: ScriptedPlane) -> AsyncGenerator[AsyncSandbox]:
    """WITHOUT ISOLATION, behind a platform."""
    served = ReferencePlatform(ScriptedProvider(unsandboxed_plane), additions=False).serve()
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(served)
        made = await AsyncSandbox.create(doors=doors_to(platform, ABX_HTTP_TIMEOUT="20"))
        yield await stack.enter_async_context(made)


async def test_what_every_agent_can_do_works(sandbox: AsyncSandbox) -> None:
    home = (await sandbox.commands.run("pwd")).stdout.strip()
    await sandbox.files.write(f"{home}/note", "kept")
    assert await sandbox.files.read(f"{home}/note") == "kept"
    assert (await sandbox.run_code("print(6 * 7)")).stdout == "42\n"
    assert (await sandbox.transfers.download_whole(f"{home}/note")).data == b"kept"


async def test_l26_a_result_has_the_same_shape_from_a_platform(sandbox: AsyncSandbox) -> None:
    """Source: faults L26 (Daytona#4681)."""
    code = (
        "class Rich:\n    def _repr_html_(self): return '<b>1</b>'\n    def _repr_json_(self): return {'a': 1}\nRich()"
    )
    (result,) = (await sandbox.run_code(code)).results
    assert (result.formats["html"], result.formats["json"]) == ("<b>1</b>", '{"a": 1}')


async def test_what_it_lacks_is_named(sandbox: AsyncSandbox) -> None:
    with pytest.raises(UnsupportedOperation) as tasks:
        await sandbox.tasks.start("true")
    with pytest.raises(UnsupportedOperation) as parts:
        await sandbox.transfers.upload("/tmp/x", b"1", last=False)
    assert [caught.value.details for caught in (tasks, parts)] == [{"capability": "tasks"}, {"capability": "transfers"}]
