"""Run the examples of a page as its reader would: in order, in one shell, in a home that is new.

All blocks of a page become one shell script: variables, folders and servers of one block are there for the next. Before
each block the script says where it is, and sends what follows to a file of that block.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.page import Block

_RUN_BLOCKS = Path(__file__).with_name("run_blocks.py")
ENVIRONMENT = Path(sys.executable).parent.parent
_START = r"""
set -eu -o pipefail
servers=()
finish() {  # Servers end in order when they are told to.
    local status=$? server
    for server in "${servers[@]}"; do kill -TERM -- "-$server" && wait "$server" || status=$?; done
    exit "$status"
}
trap finish EXIT
block() { echo "$1" >"$EXAMPLES/at"; exec >"$EXAMPLES/$1.out" 2>&1; }
serve() {  # COMMAND PORT: in the background, until it answers
    set -m; bash -c "$1" & set +m
    servers+=($!)
    until answers "$2"; do kill -0 $!; sleep 0.1; done
}
answers() {  # PORT: an answer, not only a connection, which the kernel accepts before the program can end in order
    local line
    { exec 9<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET /health HTTP/1.0\r\n\r\n' >&9
    read -rt 20 line <&9 || line=
    exec 9>&-
    [[ $line == HTTP* ]]
}
"""
_SECONDS = 110


@dataclass(frozen=True)
class Step:
    """What the reader enters at once: a block, or one command of a terminal, with what it should show."""

    line: int
    source: str
    expected: str | None


def steps(block: Block) -> list[Step]:
    """A block as the script's steps, in shell."""
    if block.language == "python":
        return [Step(block.line, block.text, block.expected)]
    if block.language == "sh":
        return [Step(block.line, block.text, block.expected)]
    found: list[Step] = []
    for number, line in enumerate(block.text.splitlines(keepends=True), block.line + 1):
        if line.startswith("$ "):
            found.append(Step(number, line[2:], None))
        elif found and line.startswith("> "):
            found[-1] = Step(found[-1].line, found[-1].source + line[2:], None)
        else:
            last = found.pop()
            found.append(Step(last.line, last.source, (last.expected or "") + line))
    return found


class Page:
    """The examples of one page, with the ports that it may use in place of those that it shows."""

    def __init__(self, blocks: Sequence[Block], folder: Path) -> None:
        self._blocks = [block for block in blocks if block.runs]
        self._folder = folder
        shown = [block.marks["serves"] for block in self._blocks if "serves" in block.marks]
        self._ports = dict(zip(shown, free_ports(len(shown)), strict=True))
        self.steps: list[Step] = []

    def script(self) -> str:
        """Everything that runs, as one script."""
        lines = [_START]
        python: list[str] = []
        for block in self._blocks:
            made = steps(block)
            if python and (block.language != "python" or block.marks):
                lines.append(_run_python(python))
                python = []
            for step in made:
                number = str(len(self.steps))
                self.steps.append(step)
                source = step.source
                if block.language == "python":
                    self._keep(number, source)
                    python.append(number)
                    if not block.marks:
                        continue
                    source, python = _run_python(python), []
                lines += [f"block {number}", *self._lines(block, source, last=step is made[-1])]
        return "\n".join([*lines, *([_run_python(python)] if python else []), f"block {len(self.steps)}", ""])

    def _keep(self, number: str, source: str) -> None:
        (self._folder / "examples" / f"{number}.py").write_text(self._with_our_ports(source), encoding="utf-8")

    def _lines(self, block: Block, source: str, *, last: bool) -> list[str]:
        before = [f"{{ {block.marks['before']}; }} >/dev/null 2>&1"] if "before" in block.marks else []
        source = self._with_our_ports(source)
        if "serves" in block.marks:
            return [*before, f"serve {shlex.quote('exec ' + source)} {self._ports[block.marks['serves']]}"]
        if "exits" in block.marks and last:
            status = block.marks["exits"]
            return [*before, f"status=0; {source.rstrip()} || status=$?", f"[ $status -eq {status} ] || exit 1"]
        return [*before, source]

    def _with_our_ports(self, text: str) -> str:
        for shown, ours in self._ports.items():
            text = re.sub(rf"\b{shown}\b", ours, text)
        return text

    def with_shown_ports(self, text: str) -> str:
        for shown, ours in self._ports.items():
            text = text.replace(ours, shown)
        return text

    def run(self) -> list[str]:
        """Run all of it; return each thing that is not as the page says."""
        script = self._folder / "examples" / "script"
        home = self._folder / "home"
        for each in (script.parent, home):
            each.mkdir()
        script.write_text(self.script(), encoding="utf-8")
        (home / ".venv").symlink_to(ENVIRONMENT)
        shell = subprocess.Popen(
            ["bash", str(script)], cwd=home, env=self._environ(home), stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = shell.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            self._end(shell, home)
        return self._problems(status)

    def _end(self, shell: subprocess.Popen[bytes], home: Path) -> None:
        """End the shell, which ends its servers, and the sandboxes of the page."""
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGTERM)
        shell.wait()
        subprocess.run(["abx", "sandbox", "kill", "--all"], env=self._environ(home), capture_output=True, check=False)

    def _environ(self, home: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "NODE_EXTRA_CA_CERTS") if name in os.environ}
        return {
            **kept,
            "HOME": str(home),
            "PATH": f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONDONTWRITEBYTECODE": "1",
            # An example that installs something is marked; one that is not gets nothing from an index.
            "PIP_NO_INDEX": "1",
            "ABX_LOCAL_RUNTIME_DIR": str(self._folder / "run"),
            "EXAMPLES": str(self._folder / "examples"),
        }

    def _problems(self, status: int | None) -> list[str]:
        folder = self._folder / "examples"
        at = int((folder / "at").read_text())
        printed = [
            self.with_shown_ports((folder / f"{number}.out").read_text(encoding="utf-8", errors="replace"))
            for number in range(min(at + 1, len(self.steps)))
        ]
        found: list[str] = []
        if status != 0:
            how = "did not end" if status is None else f"ended with {status}"
            where = self.steps[at] if at < len(self.steps) else Step(0, "a server, at the end of the page", None)
            shown = printed[at] if at < len(printed) else ""
            found.append(f"line {where.line} {how}:\n{where.source}\n{shown}")
        for step, text in zip(self.steps, printed, strict=False):
            if step.expected is not None and not matches(step.expected, text):
                found.append(f"line {step.line} shows\n{step.expected}\nand is\n{text}")
        return found


def _run_python(numbers: Sequence[str]) -> str:
    """One process for programs that follow each other: what it takes to make sandboxes is made once."""
    return f"python {shlex.quote(str(_RUN_BLOCKS))} {' '.join(numbers)}"


def matches(shown: str, printed: str) -> bool:
    """Whether something was printed that a page shows. `…` stands for anything, a line of it for any lines."""
    lines = [re.escape(line.rstrip()).replace("…", ".*?") + "\n" for line in shown.rstrip().splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == ".*?\n" else line for line in lines)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())) is not None


def free_ports(count: int) -> list[str]:
    """Ports of this machine that nobody listens on just now."""
    with_sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [str(each.getsockname()[1]) for each in with_sockets]
    finally:
        for each in with_sockets:
            each.close()
