"""JavaScript and TypeScript with state, by a node of this machine or of the development tools."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import inspector
from tests.packages.agentd.plain_agent import Client, Executed, PlainAgent, running_agent


def _program() -> str | None:
    """The newest node that is there: that of the development tools runs TypeScript too."""
    tool = inspector.node()
    return str(tool) if tool is not None and tool.exists() else shutil.which("node")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Generator[PlainAgent]:
    """An agent with node on its path."""
    node = _program()
    if node is None:
        pytest.skip("no node here: neither on the path nor by ./bootstrap --dev")
    path = f"{os.path.dirname(node)}:/usr/bin:/bin"
    with running_agent(tmp_path_factory.mktemp("node"), "--path", path) as running:
        with running.client() as client:
            if "javascript" not in client.call("GET", "/cloche/info").value["stateful_languages"]:
                pytest.skip("the node here is older than 18")
        yield running


def _js(client: Client, code: str, **fields: Any) -> Executed:
    return client.execute(code, **{"language": "javascript", "timeout_ms": 20000, **fields})


def _value(client: Client, code: str, **fields: Any) -> str:
    ran = _js(client, code, **fields)
    assert ran.error is None, ran.error
    return ran.results[-1]["text"]


def test_variables_stay_and_may_be_declared_again(client: Client) -> None:
    """As in a notebook: const, let, class and function of an earlier call are there, and can be replaced."""
    assert _value(client, "const a = 1; let b = 2; class C {}; function f() { return 3 }; a + b + f()") == "6"
    assert _value(client, "const a = 10; let b = 20; class C {}; a + b + f()") == "33"


def test_last_expression_is_shown_and_output_keeps_its_order(client: Client) -> None:
    """agent-protocol 3: the main result, display() in between, streams apart."""
    ran = _js(client, "console.log('a'); display('b'); console.log('c'); console.error('e'); ({d: [1, {e: 2}]})")
    told = [line.get("text") for line in ran.lines if line["type"] in ("stdout", "result")]
    assert told == ["a\n", "b", "c\n", "{ d: [ 1, { e: 2 } ] }"]
    assert [line["is_main_result"] for line in ran.results] == [False, True]
    assert ran.text("stderr") == "e\n"
    assert _js(client, "let nothing = 1").results == []


def test_top_level_await_and_a_promise_at_the_end(client: Client) -> None:
    """The value, not the promise."""
    assert _value(client, "const later = await Promise.resolve(7); later") == "7"
    assert _value(client, "async function main() { return 'done' }\nmain()") == "done"


def test_what_the_code_began_is_waited_for_but_not_a_server(client: Client) -> None:
    """Callbacks that were not awaited print into the call that began them; a server stays for later calls."""
    assert _js(client, "setTimeout(() => console.log('later'), 30)").stdout == "later\n"
    started = "const s = require('http').createServer((_, a) => a.end('hi')).listen(0); await 1; s.listening"
    assert _value(client, started) == "true"
    assert _value(client, "await (await fetch(`http://127.0.0.1:${s.address().port}`)).text()") == "hi"
    assert _js(client, "const t = setInterval(() => {}, 10); s.closeAllConnections(); s.close()").end["exit_code"] == 0
    assert _js(client, "clearInterval(t)").end["exit_code"] == 0


def test_modules_are_imported_in_either_way(client: Client, agent: PlainAgent) -> None:
    """import statements, import() and require, of node and of the working directory; strings are left alone."""
    (Path(agent.home) / "own.mjs").write_text("export default 4; export const five = 5")
    (Path(agent.home) / "own.cjs").write_text("module.exports = 6")
    assert (
        _value(client, "import os, { EOL as end } from 'node:os'\nimport * as all from 'os'\nend === all.EOL") == "true"
    )
    assert _value(client, "import four, {five} from './own.mjs'; four + five + require('./own.cjs')") == "15"
    assert _value(client, "(await import('./own.mjs')).five") == "5"
    assert _value(client, "`import x from 'y'` + \"import('z')\"") == "import x from 'y'import('z')"


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("function deep() { throw new TypeError('bad') }\ndeep()", "TypeError", "bad"),
        ("await Promise.reject(new RangeError('far'))", "RangeError", "far"),
        ("setTimeout(() => { throw new Error('late') }, 5)", "Error", "late"),
        ("Promise.reject(new Error('nobody')); 1", "Error", "nobody"),
        ("let = 5 5", "SyntaxError", None),
        ("throw 'words'", "Error", "'words'"),
    ],
)
def test_error_has_name_value_and_a_stack_of_user_code(client: Client, code: str, name: str, value: str | None) -> None:
    """agent-protocol 3: error; the session lives on."""
    _js(client, "globalThis.alive = 1")
    ran = _js(client, code)
    assert ran.error is not None
    assert ran.error["name"] == name
    assert value is None or ran.error["value"] == value
    assert "inspector" not in ran.error["traceback"]
    assert "cloche" not in ran.error["traceback"]
    assert ran.end["exit_code"] == 1
    assert _value(client, "alive") == "1"


def test_stack_names_the_line_of_the_code(client: Client) -> None:
    """Where it happened, in the numbers of the code that was sent."""
    ran = _js(client, "\n\nfunction deep() { null.x }\ndeep()")
    assert ran.error is not None
    assert f"execution-{ran.lines[0]['execution_count']}.js:3:" in ran.error["traceback"]


@pytest.mark.parametrize(
    "code", ["process.exit(42)", "setTimeout(() => process.exit(42), 5)", "process.exitCode = 42; void 0"]
)
def test_t17_exit_gives_its_code_and_the_session_lives(client: Client, code: str) -> None:
    """T17, sandbox-sdk PR#632: process.exit ends the execution alone."""
    _js(client, "globalThis.alive = 1")
    ran = _js(client, code)
    assert (ran.end["exit_code"], ran.end["state_kept"], ran.error) == (42, True, None)
    assert _value(client, "alive") == "1"


@pytest.mark.parametrize("code", ["while (true) {}", "await new Promise(() => setTimeout(() => {}, 1e8))"])
def test_timeout_interrupts_and_keeps_the_variables(client: Client, code: str) -> None:
    """A busy loop and a wait without end; what was printed before is there."""
    _js(client, "globalThis.alive = 1")
    ran = _js(client, f"console.log('before'); {code}", timeout_ms=300)
    assert ran.stdout == "before\n"
    assert (ran.end["stop_reason"], ran.end["exit_code"], ran.end["state_kept"]) == ("timeout", 130, True)
    assert _value(client, "alive") == "1"


def test_interrupted_waits_survive_the_collection_of_garbage(client: Client) -> None:
    """The inspector must not tell of a promise while it is collected: that would end the process."""
    collect = "for (let n = 0; n < 3e5; n++) globalThis.garbage = new Array(200).fill(n)"
    _js(client, "globalThis.alive = 1")
    for code in ("await new Promise(() => {})", "while (true) {}"):
        assert _js(client, code, timeout_ms=200).end["stop_reason"] == "timeout"
        for _ in range(3):
            assert _js(client, collect, timeout_ms=60_000).end["exit_code"] == 0
    assert _value(client, "alive") == "1"


def test_death_is_told_with_its_reason(client: Client) -> None:
    """As of a Python context."""
    ran = _js(client, "process.kill(process.pid, 'SIGSEGV'); await new Promise(() => {})")
    assert (ran.end["stop_reason"], ran.end["exit_code"]) == ("interpreter_died", 139)
    after = _js(client, "1")
    assert (after.lines[0]["reason"], "SIGSEGV" in after.lines[0]["text"]) == ("died", True)


def test_environment_of_a_call_does_not_stay(client: Client) -> None:
    """env_vars are for the call."""
    assert _value(client, "process.env.ONE", env_vars={"ONE": "1"}) == "1"
    assert _value(client, "String(process.env.ONE)") == "undefined"


def test_images_and_bundles_are_results(client: Client) -> None:
    """Bytes of a picture are a picture; Jupyter.display and raw bundles give their media types."""
    png = _js(client, "Buffer.from('89504e470d0a1a0a', 'hex')").results[0]
    assert png["png"] == "iVBORw0KGgo="
    html = _js(client, "({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<b>x</b>'})})").results[0]
    assert html["html"] == "<b>x</b>"
    raw = _js(client, "display({'application/json': {a: 1}, 'x/y': 'z'}, {raw: true})").results[0]
    assert (raw["json"], raw["extra"]) == ({"a": 1}, {"x/y": "z"})


def test_d7_large_result_goes_to_a_file(client: Client, agent: PlainAgent) -> None:
    """D7: what is beyond max_result_bytes is an output file."""
    ran = _js(client, "'x'.repeat(5000)", max_result_bytes=1000)
    assert ran.results == []
    (file,) = ran.end["output_files"]
    assert Path(file["path"]).stat().st_size == file["size"] == 5002


def test_contexts_of_their_own(client: Client, agent: PlainAgent) -> None:
    """POST /contexts with a language; the default one is listed before it is used."""
    assert "javascript" in {item["id"] for item in client.call("GET", "/contexts").value}
    made = client.call("POST", "/contexts", json.dumps({"language": "js", "cwd": "/"}).encode()).value
    assert (made["language"], made["cwd"]) == ("javascript", "/")
    assert client.execute("globalThis.own = 1; process.cwd()", context_id=made["id"]).results[0]["text"] == "/"
    assert _value(client, "typeof own") == "undefined"
    assert client.call("DELETE", f"/contexts/{made['id']}").status == 204


def test_typescript_shares_the_state_of_javascript(client: Client) -> None:
    """agent-protocol 3: the same kernel; types, interfaces, enums, imports of types."""
    if "typescript" not in client.call("GET", "/cloche/info").value["stateful_languages"]:
        pytest.skip("the node here strips no types: 22.13 and later do")
    code = "interface P { n: number }\nenum E { A = 2 }\nconst p: P = { n: 40 }\np.n + E.A"
    assert _value(client, code, language="typescript") == "42"
    assert _value(client, "p.n") == "40"
    assert _value(client, "const q: number = await Promise.resolve(p.n as number); q", language="ts") == "40"
    ran = client.execute("const x: = 5", language="typescript")
    assert ran.error is not None
    assert "SyntaxError" in ran.error["name"] or ran.error["name"] == "Error"


def test_o11_javascript_is_interrupted_and_keeps_its_state(client: Client) -> None:
    client.execute("var kept = 41", language="javascript")
    ran = client.execute("for (;;) console.log('y'.repeat(99))", language="javascript", output_limit=100_000)
    assert (ran.end["stop_reason"], ran.end["state_kept"]) == ("output_limit", True)
    assert client.execute("kept + 1", language="javascript").results[0]["text"] == "42"


def test_o11_what_a_loop_prints_leaves_node_while_the_loop_runs(client: Client) -> None:
    """Else output that nobody has seen fills the memory, and no limit of it is ever met."""
    ran = client.execute(
        "for (let n = 0; n < 50000; n++) console.log('y'.repeat(99));\nprocess.stdout.writableLength",
        language="javascript",
    )
    assert (ran.results[0]["text"], len(ran.stdout)) == ("0", 5_000_000)


def test_o11_what_is_printed_after_an_interrupted_loop_is_seen(client: Client) -> None:
    """An interrupt in the middle of a write left a stream that held back everything that came later."""
    for word in ("one", "two", "three", "four"):
        client.execute("for (;;) console.log('y'.repeat(99))", language="javascript", output_limit=100_000)
        ran = client.execute(f"console.log('{word}'); console.error('{word}')", language="javascript")
        assert (ran.stdout, ran.text("stderr")) == (f"{word}\n", f"{word}\n")


def test_what_is_printed_keeps_its_encoding_and_calls_back(client: Client) -> None:
    """`write` of node's streams: text in an encoding, bytes, a callback as second or third argument."""
    code = (
        "process.stdout.write('aMOp', 'base64', () => process.stdout.write(Buffer.from('!')));"
        "process.stdout.write('é', () => console.log(process.stdout.write(new Uint8Array([63]))))"
    )
    assert client.execute(code, language="javascript").stdout == "héé!?true\n"
    error = client.execute("process.stdout.write(7)", language="javascript").error
    assert error is not None
    assert error["name"] == "TypeError"
