"""The unmodified interpreter SDK of E2B against a local sandbox: code, contexts, figures, errors, callbacks.

Source: issue 3, "Shown by"; agent-protocol, part 3.
"""

from __future__ import annotations

import base64
from collections.abc import Generator

import e2b_code_interpreter as e2b
import pytest
from e2b import NotFoundException, SandboxException, TimeoutException
from e2b_code_interpreter import OutputMessage
from e2b_code_interpreter.charts import LineChart

from cloche_sdk import Endpoint
from tests.e2e.e2b_clients import async_client, client, listening_sandbox

pytestmark = pytest.mark.anyio

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [1, 4, 9])\nplt.title('Squares')\nplt.show()"
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def place() -> Generator[Endpoint]:
    with listening_sandbox() as sandbox:
        yield sandbox.endpoint()


@pytest.fixture(scope="module")
def theirs(place: Endpoint) -> e2b.Sandbox:
    return client(place)


def test_variables_stay_and_the_last_value_is_the_result(theirs: e2b.Sandbox) -> None:
    theirs.run_code("total = 40")
    execution = theirs.run_code("print('said'); total + 2")
    assert (execution.text, execution.logs.stdout, execution.error) == ("42", ["said\n"], None)


def test_output_errors_and_results_are_called_back(theirs: e2b.Sandbox) -> None:
    lines: list[OutputMessage] = []
    errors: list[str] = []
    results: list[str | None] = []
    theirs.run_code(
        "import sys; print('out'); print('err', file=sys.stderr); 7",
        on_stdout=lines.append,
        on_stderr=lines.append,
        on_result=lambda result: results.append(result.text),
    )
    theirs.run_code("1 / 0", on_error=lambda error: errors.append(error.name))
    assert sorted((line.line, line.error) for line in lines) == [("err\n", True), ("out\n", False)]
    assert (results, errors) == (["7"], ["ZeroDivisionError"])


def test_an_error_has_a_name_a_value_and_a_traceback(theirs: e2b.Sandbox) -> None:
    error = theirs.run_code("def f():\n    raise ValueError('no')\nf()").error
    assert error is not None
    assert (error.name, error.value) == ("ValueError", "no")
    assert "in f" in error.traceback


def test_a_figure_comes_as_png(theirs: e2b.Sandbox) -> None:
    (result,) = theirs.run_code(FIGURE).results
    assert result.png is not None
    assert base64.b64decode(result.png).startswith(PNG)


def test_envs_of_one_call_are_gone_after_it(theirs: e2b.Sandbox) -> None:
    read = "import os; os.environ.get('ONLY_HERE')"
    assert theirs.run_code(read, envs={"ONLY_HERE": "yes"}).text == "yes"
    assert theirs.run_code(read).text is None


def test_contexts_keep_variables_apart(theirs: e2b.Sandbox) -> None:
    theirs.run_code("where = 'default'")
    context = theirs.create_code_context(cwd="/tmp")
    assert theirs.run_code("import os; os.getcwd()", context=context).text == "/tmp"
    assert (theirs.run_code("where", context=context).error or pytest.fail("shared")).name == "NameError"
    assert theirs.run_code("where").text == "default"


def test_contexts_are_listed_restarted_and_removed(theirs: e2b.Sandbox) -> None:
    context = theirs.create_code_context()
    assert context.id in {each.id for each in theirs.list_code_contexts()}
    theirs.run_code("lost = 1", context=context)
    theirs.restart_code_context(context)
    assert theirs.run_code("'lost' in globals()", context=context).text == "False"
    theirs.remove_code_context(context)
    assert context.id not in {each.id for each in theirs.list_code_contexts()}
    with pytest.raises(NotFoundException):
        theirs.restart_code_context(context)


def test_a_figure_comes_as_a_chart_too(theirs: e2b.Sandbox) -> None:
    (result,) = theirs.run_code(FIGURE).results
    chart = result.chart
    assert isinstance(chart, LineChart)
    assert (chart.title, chart.elements[0].points) == ("Squares", [(1, 1), (2, 4), (3, 9)])


def test_a_table_comes_as_columns(theirs: e2b.Sandbox) -> None:
    (result,) = theirs.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})").results
    assert result["data"] == {"a": [1, 2], "b": ["x", "y"]}


def test_javascript_keeps_its_variables(theirs: e2b.Sandbox) -> None:
    try:
        theirs.run_code("const kept = 40", language="javascript")
    except SandboxException as error:
        pytest.skip(f"no node on this machine: {error}")
    assert theirs.run_code("kept + 2", language="js").text == "42"


def test_bash_runs_too(theirs: e2b.Sandbox) -> None:
    assert theirs.run_code("echo $((6 * 7))", language="bash").logs.stdout == ["42\n"]


def test_code_past_its_timeout_is_stopped(theirs: e2b.Sandbox) -> None:
    with pytest.raises(TimeoutException):
        theirs.run_code("import time\nwhile True: time.sleep(0.1)", timeout=1)
    assert theirs.run_code("'again'").text == "again"


def test_an_unknown_context_is_not_found(theirs: e2b.Sandbox) -> None:
    context = theirs.create_code_context()
    context.id = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(NotFoundException):
        theirs.run_code("1", context=context)


# -- the asynchronous client ------------------------------------------------------------------------------------


async def test_async_code_keeps_its_variables_and_draws(place: Endpoint) -> None:
    theirs = async_client(place)
    said: list[str] = []
    context = await theirs.create_code_context()
    await theirs.run_code("value = 5", context=context)
    execution = await theirs.run_code(
        "print('said'); value", context=context, on_stdout=lambda message: said.append(message.line)
    )
    assert (execution.text, said) == ("5", ["said\n"])
    (result,) = (await theirs.run_code(FIGURE)).results
    assert result.png is not None
    assert base64.b64decode(result.png).startswith(PNG)
    failed = await theirs.run_code("missing_name")
    assert failed.error is not None
    assert failed.error.name == "NameError"
