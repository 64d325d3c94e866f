"""Interpreters of the SDK: variables apart, restarted, interrupted; what one call is given; charts and tables as data.

Source: issue 3, item 4; agent-protocol, part 3.
"""

from __future__ import annotations

import anyio
import pytest

from cloche_contract.errors import ContextNotFound, CwdNotFound, InvalidArgument, UnsupportedLanguage
from cloche_sdk import AsyncSandbox, Doors, Sandbox
from cloche_sdk.code import CodeRequest, execute_code

WITHIN_S = 60


async def test_variables_of_contexts_are_apart_and_gone_after_a_restart(sandbox: AsyncSandbox) -> None:
    context = await sandbox.contexts.create(cwd="/tmp")
    assert (context.language, context.cwd) == ("python", "/tmp")
    await sandbox.run_code("where = 'context'", context=context)
    await sandbox.run_code("where = 'default'")
    assert (await sandbox.run_code("where", context=context.id)).text == "context"
    assert (await sandbox.run_code("where")).text == "default"
    await sandbox.contexts.restart(context)
    error = (await sandbox.run_code("where", context=context)).error
    assert error is not None
    assert error.name == "NameError"


async def test_contexts_are_listed_until_they_are_removed(sandbox: AsyncSandbox) -> None:
    context = await sandbox.contexts.create()
    assert context in await sandbox.contexts.list()
    await sandbox.contexts.remove(context)
    assert context not in await sandbox.contexts.list()
    assert "python" in [found.id for found in await sandbox.contexts.list()]
    for call in (sandbox.contexts.remove, sandbox.contexts.restart, sandbox.contexts.interrupt):
        with pytest.raises(ContextNotFound):
            await call(context)
    with pytest.raises(ContextNotFound):
        await sandbox.run_code("1", context=context)


async def test_a_context_that_cannot_be_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(CwdNotFound):
        await sandbox.contexts.create(cwd="/nowhere")
    with pytest.raises(UnsupportedLanguage):
        await sandbox.contexts.create("shell")
    with pytest.raises(InvalidArgument) as both:
        await sandbox.run_code("1", "python", context="python")
    assert both.value.details["field"] == "language"


async def test_an_interrupt_ends_what_runs_and_keeps_the_variables(sandbox: AsyncSandbox) -> None:
    running = anyio.Event()
    ended: list[str] = []
    await sandbox.run_code("kept = 1")

    async def run() -> None:
        code = "print('running', flush=True)\nwhile True: pass"
        result = await sandbox.run_code(code, on_stdout=lambda _text: running.set())
        ended.append(result.stop_reason)

    with anyio.fail_after(WITHIN_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await running.wait()
            assert await sandbox.contexts.interrupt("python")
    assert ended == ["cancelled"]
    assert (await sandbox.run_code("kept")).text == "1"
    assert not await sandbox.contexts.interrupt("python")


async def test_envs_are_there_for_one_call(sandbox: AsyncSandbox) -> None:
    read = "import os; print(os.environ.get('ONLY_HERE'))"
    assert (await sandbox.run_code(read, envs={"ONLY_HERE": "yes"})).stdout == "yes\n"
    assert (await sandbox.run_code(read)).stdout == "None\n"


async def test_a_chart_and_a_table_are_data(sandbox: AsyncSandbox) -> None:
    """Decision D24: the names of E2B; whatever library made them."""
    code = (
        "display({'e2b/chart': {'type': 'line', 'title': 'Squares', 'elements': []},"
        " 'e2b/data': {'a': [1, 2]}, 'text/plain': 'shown'}, raw=True)"
    )
    (result,) = (await sandbox.run_code(code)).results
    assert result.text == "shown"
    assert result.chart == {"type": "line", "title": "Squares", "elements": []}
    assert result.data == {"a": [1, 2]}
    (plain,) = (await sandbox.run_code("1")).results
    assert (plain.chart, plain.data) == (None, None)


async def test_results_beyond_what_was_asked_for_become_files(sandbox: AsyncSandbox) -> None:
    """Decision D7: the rest as output files."""
    code = "for n in range(3): display({'text/html': f'<p>{n}', 'text/plain': str(n)}, raw=True)"
    execution = await execute_code(sandbox.link, CodeRequest(code, max_results=2, max_result_bytes=100))
    assert [sorted(result.formats) for result in execution.results] == [["html", "text"], ["html", "text"], ["text"]]
    (file,) = execution.output_files
    assert await sandbox.files.read(file.path) == "<p>2"


async def test_metrics_tell_what_is_there(sandbox: AsyncSandbox) -> None:
    metrics = await sandbox.get_metrics()
    assert metrics.cpu_count >= 1
    assert 0 < metrics.memory_used_bytes <= metrics.memory_total_bytes
    assert 0 < metrics.disk_used_bytes <= metrics.disk_total_bytes


def test_the_synchronous_half_has_contexts_too(agent_doors: Doors) -> None:
    with Sandbox.create(doors=agent_doors) as sandbox:
        context = sandbox.contexts.create()
        sandbox.run_code("x = 6", context=context)
        assert sandbox.run_code("x * 7", context=context).text == "42"
        sandbox.contexts.remove(context)
