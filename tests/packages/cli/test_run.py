"""`abx run` and `abx exec`: the program's output and status, and a sandbox that is gone afterwards.

The scripted provider stands in: its agent is the real one, its isolation is none.
"""

import io
import json
import sys
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from cloche_contract.errors import ProviderUnavailable, QuotaExceeded
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.scripted import installed_plane
from tests.packages.cli.ran import Abx

KEYS = [
    "error",
    "exit_code",
    "figures",
    "output_files",
    "replaced",
    "results",
    "sandbox_id",
    "state_kept",
    "stderr",
    "stderr_bytes",
    "stdout",
    "stdout_bytes",
    "stop_reason",
    "timed_out",
    "truncated",
]
PNG = "class Figure:\n    def _repr_png_(self):\n        return b'\\x89PNG\\r\\n\\x1a\\n' + bytes(8)\n\nFigure()"


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> Generator[ScriptedPlane]:
    monkeypatch.setenv("ABX_PROVIDER", "scripted")
    with installed_plane(ScriptedPlane(data_plane="unsandboxed")) as plane:
        yield plane
        anyio.run(plane.aclose)


def test_the_output_and_the_status_are_the_programs(abx: Abx, scripted: ScriptedPlane) -> None:
    ran = abx(["run", "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(7)"])
    assert (ran.status, ran.out, ran.err) == (7, "out\n", "err\n")
    assert scripted.alive == []


def test_the_last_value_is_shown_as_in_a_session(abx: Abx) -> None:
    assert abx(["run", "6 * 7"]).out == "42\n"


def test_an_exception_is_status_1_with_its_traceback_on_stderr(abx: Abx) -> None:
    ran = abx(["run", "1 / 0"])
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.count("ZeroDivisionError: division by zero") == 1


def test_a_file_runs_in_the_language_of_its_ending(abx: Abx, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("echo $((6 * 7)); exit 3\n")
    ran = abx(["run", "job.sh"])
    assert (ran.status, ran.out) == (3, "42\n")


def test_stdin_is_a_program(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("print('grüße')".encode())))
    assert abx(["run", "-"]).out == "grüße\n"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"  \n"])
def test_a_file_that_holds_no_program_is_refused(
    abx: Abx, scripted: ScriptedPlane, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "job.py").write_bytes(content)
    assert abx(["run", "job.py"]).status == 2
    assert scripted.script.requests == []


def test_a_program_over_its_time_is_stopped_with_status_5_and_its_output(abx: Abx, scripted: ScriptedPlane) -> None:
    """Faults T8 and T10."""
    ran = abx(["run", "--timeout", "1", "print('before', flush=True)\nwhile True: pass"])
    assert (ran.status, ran.out) == (5, "before\n")
    assert "did not end in time" in ran.err
    assert scripted.alive == []


def test_figures_are_saved_next_to_what_is_there(abx: Abx, tmp_path: Path) -> None:
    (tmp_path / "figure-1.png").write_text("mine")
    ran = abx(["run", PNG])
    assert "saved figure-2.png" in ran.err
    assert (tmp_path / "figure-1.png").read_text() == "mine"
    assert (tmp_path / "figure-2.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_does_not_hide_the_last_value(abx: Abx) -> None:
    ran = abx(["run", PNG.replace("\n\nFigure()", "\n\ndisplay(Figure())\n6 * 7")])
    assert (ran.out, ran.err) == ("42\n", "saved figure-1.png\n")


def test_a_folder_for_figures_is_made(abx: Abx, tmp_path: Path) -> None:
    ran = abx(["--json", "run", "--figures", "out/figures", PNG])
    assert json.loads(ran.out)["figures"] == ["out/figures/figure-1.png"]
    assert (tmp_path / "out/figures/figure-1.png").exists()


def test_files_that_the_program_wrote_are_named(abx: Abx) -> None:
    ran = abx(["run", "open('a.csv', 'w').write('1,2') and None"])
    assert "a.csv, 3 bytes" in ran.err


def test_json_is_one_document(abx: Abx) -> None:
    ran = abx(["run", "print('hi')\n2", "--json"])
    document = json.loads(ran.out)
    assert ran.err == ""
    assert sorted(document) == KEYS
    assert (document["stdout"], document["exit_code"], document["stop_reason"]) == ("hi\n", 0, "exit")
    assert document["results"] == [{"types": ["text"], "text": "2"}]


def test_kept_sandboxes_live_and_their_id_is_told(abx: Abx, scripted: ScriptedPlane) -> None:
    ran = abx(["run", "--keep", "print(1)"])
    (alive,) = scripted.alive
    assert f"sandbox {alive} lives" in ran.err
    assert json.loads(abx(["--json", "run", "--keep", "1"]).out)["sandbox_id"] in scripted.alive


def test_a_program_that_cannot_start_leaves_nothing_even_when_it_should_be_kept(
    abx: Abx, scripted: ScriptedPlane
) -> None:
    ran = abx(["--json", "run", "--keep", "--language", "r", "1"])
    if ran.status == 0:  # this machine has R
        return
    document = json.loads(ran.err)
    assert (ran.status, document["code"]) == (1, "unsupported_language")
    assert "python" in document["details"]["available"]
    assert scripted.alive == []


def test_a_platform_that_fails_is_told_with_the_status_of_its_category(abx: Abx, scripted: ScriptedPlane) -> None:
    scripted.script.fail_next("create", QuotaExceeded())
    assert abx(["run", "1"]).status == 6
    scripted.script.fail_next("create", ProviderUnavailable(http_status=502))
    ran = abx(["exec", "true"])
    assert (ran.status, ran.err.count("\n")) == (1, 2)


def test_a_command_gives_its_output_and_status(abx: Abx, scripted: ScriptedPlane) -> None:
    ran = abx(["exec", "--", "sh", "-c", "echo out; echo err >&2; exit 9"])
    assert (ran.status, ran.out, ran.err) == (9, "out\n", "err\n")
    assert scripted.alive == []


def test_one_word_is_a_line_for_the_shell_and_several_are_words(abx: Abx) -> None:
    assert abx(["exec", "echo a; echo b | tr b c"]).out == "a\nc\n"
    assert abx(["exec", "--", "echo", "a; echo b", "$HOME"]).out == "a; echo b $HOME\n"


def test_options_after_the_first_word_belong_to_the_command(abx: Abx) -> None:
    assert abx(["exec", "echo", "--json", "--timeout", "0"]).out == "--json --timeout 0\n"


def test_variables_and_folder_reach_the_command(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HERE", "here")
    words = ["exec", "--env", "A=b=c", "--env", "FROM_HERE", "--cwd", "/", 'echo "$A|$FROM_HERE|$PWD"']
    assert abx(words).out == "b=c|here|/\n"


def test_a_folder_that_is_missing_is_not_found(abx: Abx) -> None:
    """Fault T18."""
    assert abx(["exec", "--cwd", "/no/such/folder", "true"]).status == 4


def test_a_command_runs_in_a_living_sandbox_and_leaves_it_alive(abx: Abx, scripted: ScriptedPlane) -> None:
    sandbox_id = abx(["sandbox", "create"]).out.strip()
    abx(["exec", "--sandbox", sandbox_id, "echo kept > note"])
    assert abx(["exec", "--sandbox", f"scripted:{sandbox_id}", "cat note"]).out == "kept\n"
    assert scripted.alive == [sandbox_id]


def test_a_command_over_its_time_is_status_5(abx: Abx) -> None:
    document = json.loads(abx(["--json", "exec", "--timeout", "1", "echo before; sleep 60"]).out)
    assert (document["stdout"], document["stop_reason"], document["timed_out"]) == ("before\n", "timeout", True)
    assert abx(["exec", "--timeout", "1", "sleep 60"]).status == 5


def test_bytes_that_are_no_text_do_not_stop_the_output(abx: Abx) -> None:
    """Fault O1."""
    ran = abx(["exec", r"printf 'a\377b\n'; exit 4"])
    assert (ran.status, ran.out) == (4, "a\ufffdb\n")
