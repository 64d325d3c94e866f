"""Code: the warm interpreter and the per-call languages."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from cloche_agentd import limits
from tests.packages.agentd.plain_agent import TOKEN, Client, PlainAgent, running_agent

SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Generator[PlainAgent]:
    """An agent whose user code may import what the tests' environment has."""
    with running_agent(tmp_path_factory.mktemp("code"), "--import-path", SITE_PACKAGES) as running:
        yield running


def test_last_expression_is_the_main_result(client: Client) -> None:
    """agent-protocol 3: as at a prompt."""
    ran = client.execute("print('hello')\n1 + 1")
    assert ran.stdout == "hello\n"
    assert ran.results == [{"type": "result", "text": "2", "is_main_result": True}]
    assert ran.end["exit_code"] == 0
    assert ran.end["stop_reason"] == "exit"


def test_l22_variables_stay_between_calls(client: Client) -> None:
    """L22, twenty#21664: one context, until it is reset."""
    client.execute("kept = 41")
    assert client.execute("kept + 1").results[0]["text"] == "42"


def test_code_of_long_ago_is_forgotten_but_not_that_of_the_last_calls(client: Client) -> None:
    """T37: sources are kept for tracebacks, and bounded."""
    client.execute("def early(): raise ValueError")
    for _ in range(limits.SOURCES):
        client.execute("pass")
    client.execute("def late(): raise ValueError")
    kept = client.execute("import linecache; print(sum(name.startswith('<execution') for name in linecache.cache))")
    assert int(kept.stdout) == limits.SOURCES
    for name, shown in (("early", False), ("late", True)):
        error = client.execute(f"{name}()").error
        assert error is not None
        assert (f"def {name}()" in error["traceback"]) is shown


def test_semicolon_hides_the_value(client: Client) -> None:
    """A notebook habit: the closing semicolon."""
    assert client.execute("5;").results == []
    assert client.execute("x = 'é'; x").results[0]["text"] == "é"


def test_error_has_name_value_and_a_traceback_of_user_code_only(client: Client) -> None:
    """agent-protocol 3: error."""
    ran = client.execute("def f():\n    return 1/0\nf()")
    assert ran.error is not None
    assert (ran.error["name"], ran.error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "return 1/0" in ran.error["traceback"]
    assert "cloche_agentd" not in ran.error["traceback"]
    assert ran.end["exit_code"] == 1


def test_syntax_error_shows_its_place(client: Client) -> None:
    """No frame of ours, and the line with its caret."""
    ran = client.execute("a = (1\nb = 2")
    assert ran.error is not None
    assert ran.error["name"] == "SyntaxError"
    assert "a = (1" in ran.error["traceback"]
    assert "cloche_agentd" not in ran.error["traceback"]


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("exit()", 0, ""),
        ("raise SystemExit('bad end')", 1, "bad end\n"),
    ],
)
def test_system_exit_is_an_exit_code(client: Client, code: str, exit_code: int, stderr: str) -> None:
    """sys.exit ends the execution, not the session."""
    client.execute("survives = 1")
    ran = client.execute(code)
    assert ran.error is None
    assert ran.end["exit_code"] == exit_code
    assert ran.text("stderr") == stderr
    assert client.execute("survives").results[0]["text"] == "1"


def test_top_level_await_works(client: Client) -> None:
    """Notebook code awaits without asyncio.run, and asyncio.run works as well."""
    assert client.execute("import asyncio\nawait asyncio.sleep(0, 'slept')").results[0]["text"] == "slept"
    assert client.execute("async def f(): return 5\nasyncio.run(f())").results[0]["text"] == "5"


def test_input_reads_end_of_file(client: Client) -> None:
    """T12: input() does not wait."""
    ran = client.execute("input()")
    assert ran.error is not None
    assert ran.error["name"] == "EOFError"


def test_output_of_programs_is_captured_in_order(client: Client) -> None:
    """Output is taken from the descriptors, so what a program prints is there too."""
    ran = client.execute(
        "import os, subprocess\nprint('first')\nos.system('echo second')\nos.write(1, b'third\\n')\n"
        "subprocess.run(['sh', '-c', 'echo warned >&2']); None"
    )
    assert ran.stdout == "first\nsecond\nthird\n"
    assert ran.text("stderr") == "warned\n"


def test_printed_text_comes_before_the_result_that_follows(client: Client) -> None:
    """The order of lines is the order of the code, however busy the reader is."""
    ran = client.execute("for i in range(150):\n    print(i, end='')\n    display(-i)")
    kinds = [(line["type"], line["text"]) for line in ran.lines[1:-1]]
    assert kinds == [pair for i in range(150) for pair in (("stdout", str(i)), ("result", str(-i)))]


def test_o1_bytes_that_are_no_text_are_replaced_and_told(client: Client) -> None:
    """O1: replacement, a flag, and the exit code is kept."""
    ran = client.execute("import os; _ = os.write(1, b'a\\xffb')")
    assert ran.stdout == "a\ufffdb"
    assert ran.end["replaced"] is True
    assert ran.end["stdout_bytes"] == 3
    assert client.execute("print('\\ufffd')").end["replaced"] is False


def test_o6_large_output_is_complete(client: Client) -> None:
    """O6: 4 MiB of multi-byte text, not one character broken."""
    ran = client.execute("import sys; _ = sys.stdout.write('ä☹' * 838861)")
    assert ran.stdout == "ä☹" * 838861
    assert ran.end["replaced"] is False


def test_o17_any_character_can_be_printed(client: Client) -> None:
    """O17."""
    assert client.execute("print('\\u2639')").stdout == "☹\n"


def test_l25_one_result_per_display(client: Client) -> None:
    """L25, E2B#670: all representations of one object are one result."""
    code = (
        "class Rich:\n"
        "    def _repr_html_(self): return '<b>x</b>'\n"
        "    def _repr_png_(self): return b'\\x89PNG'\n"
        "    def _repr_json_(self): return {'a': [1]}\n"
        "    def _repr_markdown_(self): return '**x**'\n"
        "    def __repr__(self): return 'rich'\n"
        "display(Rich())\nRich()"
    )
    expected = {
        "type": "result",
        "text": "rich",
        "html": "<b>x</b>",
        "png": base64.b64encode(b"\x89PNG").decode(),
        "json": {"a": [1]},
        "markdown": "**x**",
    }
    assert client.execute(code).results == [
        {**expected, "is_main_result": False},
        {**expected, "is_main_result": True},
    ]


def test_mime_bundle_and_unknown_types_are_kept(client: Client) -> None:
    """agent-protocol 3: `extra` holds other media types."""
    code = (
        "class B:\n"
        "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/plain': 'b', 'image/svg+xml': '<svg/>', 'application/x-own': 'raw'}, {}\n"
        "B()"
    )
    result = client.execute(code).results[0]
    assert (result["text"], result["svg"], result["extra"]) == ("b", "<svg/>", {"application/x-own": "raw"})


def test_object_that_answers_any_attribute_shows_its_repr(client: Client) -> None:
    """Mocks and proxies are not taken for rich objects."""
    result = client.execute("from unittest.mock import MagicMock\nMagicMock(name='m')").results[0]
    assert set(result) == {"type", "text", "is_main_result"}


def test_figures_become_pictures_without_show(client: Client) -> None:
    """matplotlib: open figures are shown at the end, plt.show() shows at once, and each only once."""
    pytest.importorskip("matplotlib")
    ran = client.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);")
    assert [sorted(result) for result in ran.results] == [["chart", "is_main_result", "png", "text", "type"]]
    assert base64.b64decode(ran.results[0]["png"]).startswith(PNG)
    shown = client.execute("plt.figure(); plt.plot([1]); plt.show(); print('after')")
    assert [line["type"] for line in shown.lines] == [
        "number_of_executions",
        "result",
        "stdout",
        "end_of_execution",
    ]
    assert client.execute("1;").results == []


def test_figure_as_last_value_is_one_picture(client: Client) -> None:
    """L25 for figures: displayed once, not again at the end."""
    pytest.importorskip("matplotlib")
    ran = client.execute("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig")
    assert len(ran.results) == 1
    assert "png" in ran.results[0]


def test_figure_survives_an_error_after_it(client: Client) -> None:
    """A picture that was drawn is shown, even when the code fails later."""
    pytest.importorskip("matplotlib")
    ran = client.execute("import matplotlib.pyplot as plt\nplt.plot([1])\n1/0")
    assert len(ran.results) == 1
    assert ran.error is not None


def test_programs_started_by_code_know_no_backend_of_ours(client: Client) -> None:
    """A `python plot.py` that user code starts has no module of ours to load."""
    code = "import subprocess\nprint('cloche_figures' in subprocess.run('env', capture_output=True, text=True).stdout)"
    assert client.execute(code).stdout == "False\n"


def test_data_frame_has_html_and_text(client: Client) -> None:
    """pandas objects show as tables."""
    pytest.importorskip("pandas")
    result = client.execute("import pandas as pd\npd.DataFrame({'a': [1]})").results[0]
    assert "<table" in result["html"]
    assert "a" in result["text"]


def test_results_over_the_asked_size_become_files(client: Client) -> None:
    """D7: pictures beyond the limits are output files."""
    code = (
        "class P:\n    def _repr_png_(self): return b'\\x89PNG' + bytes(2000)\n    def __repr__(self): return 'p'\n"
        "display(P()); display(P())"
    )
    ran = client.execute(code, max_result_bytes=1000)
    assert ran.results == [{"type": "result", "text": "p", "is_main_result": False}] * 2
    assert [item["size"] for item in ran.end["output_files"]] == [2004, 2004]
    assert Path(ran.end["output_files"][0]["path"]).read_bytes().startswith(b"\x89PNG")
    few = client.execute(code, max_results=1)
    assert ["png" in result for result in few.results] == [True, False]


def test_output_files_are_those_the_code_wrote(client: Client, agent: PlainAgent) -> None:
    """Files made or changed by the execution, not those that were there or hidden."""
    client.put("before.txt", b"1")
    ran = client.execute(
        "import os\nopen('made.csv','w').write('a,b')\nos.makedirs('sub/deep', exist_ok=True)\n"
        "open('sub/deep/x.txt','w').close()\nopen('.hidden','w').close()\n"
        "os.makedirs('__pycache__', exist_ok=True)\nopen('__pycache__/c','w').close()"
    )
    home = str(agent.home)
    assert ran.end["output_files"] == [
        {"name": "made.csv", "path": f"{home}/made.csv", "size": 3},
        {"name": "x.txt", "path": f"{home}/sub/deep/x.txt", "size": 0},
    ]
    assert client.execute("1").end["output_files"] == []
    changed = client.execute("with open('before.txt', 'a') as f: f.write('2')").end["output_files"]
    assert [item["name"] for item in changed] == ["before.txt"]


def test_output_files_are_bounded(client: Client) -> None:
    """At most 100 are listed."""
    ran = client.execute("import os\nos.makedirs('many')\nfor i in range(150): open(f'many/{i}', 'w').close()")
    assert len(ran.end["output_files"]) == 100


def test_call_environment_is_set_and_removed(client: Client) -> None:
    """agent-protocol 3: env_vars live for one call."""
    assert client.execute("import os; print(os.environ['ONLY_NOW'])", env_vars={"ONLY_NOW": "1"}).stdout == "1\n"
    assert client.execute("print(os.environ.get('ONLY_NOW'))").stdout == "None\n"


def test_environment_of_code_is_the_documented_base(client: Client) -> None:
    """E1: what code sees is the same short list as for commands."""
    names = set(client.execute("import os; print(*os.environ)").stdout.split())
    assert names == {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "PYTHONIOENCODING", "CLOCHE_TASK"}


def test_random_numbers_differ_between_contexts(agent: PlainAgent, client: Client) -> None:
    """Forks of one process must not share their random sequence."""
    drawn: set[str] = set()
    for _ in range(3):
        identity = client.call("POST", "/contexts", b"{}").value["id"]
        drawn.add(client.execute("import random; random.random()", context_id=identity).results[0]["text"])
        client.call("DELETE", f"/contexts/{identity}")
    assert len(drawn) == 3


def test_token_is_not_in_the_memory_of_user_code(client: Client) -> None:
    """The context is a fork of init, and init never saw the token."""
    # One class per character: neither this code nor what the search makes of it holds the token in one piece.
    pattern = "".join(f"[{character}]" for character in TOKEN).encode()
    code = (
        f"import re\nfound = 0\npattern = re.compile({pattern!r})\n"
        "for line in open('/proc/self/maps'):\n"
        "    span, mode = line.split()[:2]\n"
        "    if 'r' not in mode or '[v' in line: continue\n"
        "    lo, hi = (int(x, 16) for x in span.split('-'))\n"
        "    with open('/proc/self/mem', 'rb', 0) as mem:\n"
        "        mem.seek(lo)\n"
        "        try: data = mem.read(hi - lo)\n"
        "        except OSError: continue\n"
        "    found += sum(1 for _ in pattern.finditer(data))\n"
        "    del data\n"
        "print(found)"
    )
    assert client.execute(code).stdout == "0\n"


def test_descriptors_of_user_code_are_four(fresh_agent: PlainAgent) -> None:
    """Nothing of init's stays open in a context: streams and the control channel only."""
    code = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) != 4))"
    with fresh_agent.client() as client:
        assert client.execute(code).stdout == "[0, 1, 2, 3]\n"


def test_forked_child_that_returns_does_not_answer_twice(client: Client) -> None:
    """User code may fork; its child ends where its parent goes on, with the status that its code has."""
    code = "import os, sys\npid = os.fork()\nif not pid: print('child'); sys.exit(5)\nprint(os.waitpid(pid, 0)[1] >> 8)"
    assert client.execute(code).stdout == "child\n5\n"
    assert client.execute("1").results[0]["text"] == "1"


def test_multiprocessing_works(client: Client) -> None:
    """A pool of forks of user code."""
    code = "import multiprocessing as m\ndef sq(x): return x * x\nwith m.Pool(2) as p: print(p.map(sq, range(4)))"
    assert client.execute(code).stdout == "[0, 1, 4, 9]\n"


def test_notebook_imports_work_without_ipython(client: Client, agent: PlainAgent) -> None:
    """Code written for notebooks imports display and its kinds; where IPython is not installed, they work too."""
    code = (
        "from IPython.display import HTML, Image, Markdown, JSON, display\n"
        "display(HTML('<b>1</b>'), Markdown('**2**'), JSON({'a': 3}))\n"
        "open('p.png', 'wb').write(b'\\x89PNG 4')\ndisplay(Image('p.png'), Image(data=b'\\xff\\xd8\\xff'))"
    )
    ran = client.execute(code)
    kinds = [sorted(set(result) - {"type", "text", "is_main_result"}) for result in ran.results]
    assert kinds == [["html"], ["markdown"], ["json"], ["png"], ["jpeg"]], ran.lines
    assert client.execute("import IPython; IPython.get_ipython() is None").results[0]["text"] == "True"


def test_notebook_lines_work(client: Client) -> None:
    """`!command` and harmless magics, as notebook users write them."""
    ran = client.execute("%matplotlib inline\n!echo from shell\nx = 7 % 4\nx")
    assert ran.stdout == "from shell\n"
    assert ran.results[0]["text"] == "3"


def test_context_is_created_used_restarted_and_deleted(client: Client, agent: PlainAgent) -> None:
    """agent-protocol 3: /contexts."""
    made = client.call("POST", "/contexts", json.dumps({"cwd": "/tmp"}).encode()).value
    assert made["language"] == "python"
    assert client.execute("import os; y = 1; print(os.getcwd())", context_id=made["id"]).stdout == "/tmp\n"
    listed = client.call("GET", "/contexts").value
    assert {made["id"], "python"} <= {item["id"] for item in listed}
    assert client.call("POST", f"/contexts/{made['id']}/restart").status == 204
    assert client.execute("'y' in globals()", context_id=made["id"]).results[0]["text"] == "False"
    assert client.call("DELETE", f"/contexts/{made['id']}").status == 204
    reply = client.call("POST", "/execute", json.dumps({"code": "1", "context_id": made["id"]}).encode())
    assert (reply.status, reply.value["cloche"]["code"]) == (404, "context_not_found")


def test_context_and_language_together_are_refused(client: Client) -> None:
    """agent-protocol 3."""
    body = json.dumps({"code": "1", "context_id": "python", "language": "python"}).encode()
    assert client.call("POST", "/execute", body).status == 400
