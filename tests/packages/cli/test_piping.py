"""`abx exec --stdin`: what is piped in reaches the command as it comes."""

import subprocess
import sys

from tests.packages.cli.desk import WITHIN_S, Desk, desk

__all__ = ["desk"]


def test_all_that_is_piped_in_arrives_with_its_end(desk: Desk) -> None:
    """More than a pipe holds, bytes that are no text, and nothing at all."""
    sent = bytes(range(256)) * 8192
    done = desk.abx("exec", "-i", "--sandbox", desk.sandbox, "--", "wc", "-c", data=sent)
    assert (done.returncode, done.stdout) == (0, b"%d\n" % len(sent))
    desk.abx("exec", "--stdin", "--sandbox", desk.sandbox, "cat > got", data=sent)
    assert desk.abx("sandbox", "download", desk.sandbox, "got", "-").stdout == sent
    assert desk.abx("exec", "--stdin", "--sandbox", desk.sandbox, "wc -c", data=b"").stdout == b"0\n"


def test_files_and_devices_are_read_too(desk: Desk) -> None:
    """The kernel lets nobody wait for these."""
    (desk.folder / "words").write_text("b\na\n")
    command = [sys.executable, "-m", "cloche_cli", "exec", "-i", "--sandbox", desk.sandbox, "sort"]
    for name, expected in (("words", b"a\nb\n"), ("/dev/null", b"")):
        with (desk.folder / name).open("rb") as stdin:
            done = subprocess.run(
                command, stdin=stdin, capture_output=True, env=desk.environ, timeout=WITHIN_S, check=False
            )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_a_command_answers_while_its_input_is_open_and_ends_before_it(desk: Desk) -> None:
    """Each line is passed on when it is there; who reads no further ends the whole."""
    command = [sys.executable, "-m", "cloche_cli", "exec", "-i", "--sandbox", desk.sandbox]
    line = "read a; echo got $a; read b; echo and $b; exit 3"
    with subprocess.Popen([*command, line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=desk.environ) as talking:
        assert talking.stdin is not None
        assert talking.stdout is not None
        for word, answer in ((b"one", b"got one\n"), (b"two", b"and two\n")):
            talking.stdin.write(word + b"\n")
            talking.stdin.flush()
            assert talking.stdout.readline() == answer
        assert talking.wait(WITHIN_S) == 3


def test_a_command_that_never_reads_is_ended_by_its_timeout(desk: Desk) -> None:
    done = desk.abx("exec", "-i", "--timeout", "1", "--sandbox", desk.sandbox, "sleep 1000", data=b"x" * (4 << 20))
    assert done.returncode == 5
