"""Every task of this repository. `nox -l` lists them; `nox -t ci` is what CI runs.

The sessions run in the environment that `./bootstrap --dev` made: one set of tools, at the versions
of constraints.txt, and no second download. Only `standalone` makes environments, one per package.
"""

from __future__ import annotations

import os
import sys

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
nox.options.error_on_external_run = False
nox.options.tags = ["ci"]


def python(session: nox.Session, *arguments: str) -> None:
    """Run the environment's own interpreter, with the generator's output independent of the caller's locale."""
    session.run(sys.executable, *arguments, env={**os.environ, "PYTHONHASHSEED": "0"})


def pytest(session: nox.Session, *arguments: str) -> None:
    python(session, "-m", "pytest", *(session.posargs or arguments))


@nox.session
def codegen(session: nox.Session) -> None:
    """Write everything that comes from schemas/. With `-- --check`, compare instead and name each difference."""
    if session.posargs == ["--check"]:
        python(session, "-m", "cloche_codegen", "check")
    elif not session.posargs:
        python(session, "-m", "cloche_codegen", "build")
    else:
        session.error("codegen takes --check and nothing else")


@nox.session(tags=["ci"])
def drift(session: nox.Session) -> None:
    """The same as `codegen -- --check`, for `-t ci`."""
    python(session, "-m", "cloche_codegen", "check")


@nox.session(default=False)
def new_tool(session: nox.Session) -> None:
    """Start a tool: `nox -s new_tool -- sandbox my_tool` writes the skeleton of its schema."""
    python(session, "-m", "cloche_codegen", "new-tool", *session.posargs)


@nox.session(tags=["ci"])
def lint(session: nox.Session) -> None:
    """Style, format, and who may import whom."""
    python(session, "-m", "ruff", "check", "--quiet", ".")
    python(session, "-m", "ruff", "format", "--quiet", "--check", ".")
    python(session, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache")


@nox.session(tags=["ci"])
def typing(session: nox.Session) -> None:
    """pyright, strict, over hand-written and generated code, generator and tests."""
    python(session, "-m", "pyright", *session.posargs)


@nox.session(tags=["ci"])
def tests(session: nox.Session) -> None:
    """Every test. Arguments go to pytest: `nox -s tests -- tests/packages/sdk -k session`."""
    inspector(session)
    pytest(session, "tests", "--durations=15", "--durations-min=2")


@nox.session(default=False)
def contract(session: nox.Session) -> None:
    """The tests of the contract and its generator only."""
    pytest(session, "tests/contract", "tests/codegen")


@nox.session(default=False)
def requirements(session: nox.Session) -> None:
    """How many requirements there are, and how many tests show them."""
    python(session, "-m", "tests.requirements")


@nox.session(default=False)
def conformance(session: nox.Session) -> None:
    """The provider conformance suite, against every provider of this machine."""
    pytest(session, "tests/conformance")


@nox.session(default=False)
def e2e(session: nox.Session) -> None:
    """Whole paths: real clients, real processes, real sandboxes."""
    inspector(session)
    pytest(session, "tests/e2e")


@nox.session(default=False)
def soak(session: nox.Session) -> None:
    """The repetitions of the kill, leak and load tests, twenty times as often as in CI."""
    pytest(session, "tests", "-m", "soak", "--scale", "20", "-o", "faulthandler_timeout=1800")


@nox.session(tags=["ci"])
def agent(session: nox.Session) -> None:
    """Run the in-sandbox agent on a bare interpreter and see that it imports nothing after it started."""
    python(session, "-m", "tests.architecture.bare_agent")


@nox.session(tags=["ci"])
def standalone(session: nox.Session) -> None:
    """Build each wheel, install it alone, import all of it, and compare what came along with the allowed list."""
    python(session, "-m", "tests.architecture.standalone", *session.posargs)


@nox.session(default=False)
def oldest(session: nox.Session) -> None:
    """The packages that run on Python 3.10, in a real one: imported, and serving a client of each protocol era."""
    python(session, "-m", "tests.architecture.oldest")


@nox.session(tags=["ci"])
def smoke(session: nox.Session) -> None:
    """The benchmarks, for a minute: that they run and count successes, not what they measure."""
    python(session, "-m", "tests.benchmarks", "--smoke")


@nox.session(tags=["ci"])
def docs(session: nox.Session) -> None:
    """The site, in .cache/docs/html. A broken link or a page that no list names makes it fail."""
    python(session, "-m", "tests.docs.site", *session.posargs)


@nox.session(default=False)
def newcomer(session: nox.Session) -> None:
    """From a bare machine to a tool call of the MCP Inspector, in the three commands of the documentation, timed."""
    python(session, "-m", "tests.docs.newcomer")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The paired benchmarks, with their table. `-- --json FILE` keeps the numbers, `--docs` puts them into the docs.

    The escape battery follows, side by side in a sandbox, in bubblewrap and in `docker run`.
    """
    python(session, "-m", "tests.benchmarks", *session.posargs)
    python(session, "-m", "tests.packages.local.escape.compare")


@nox.session(default=False)
def peers(session: nox.Session) -> None:
    """Make the environment of the other libraries that `bench` measures beside ours. Nothing of ours requires them."""
    python(session, "-m", "tests.benchmarks.environment")


@nox.session(default=False)
def clients(session: nox.Session) -> None:
    """Every client that is tested, over stdio and HTTP, with a matrix. `-- --docs` puts it into the documentation."""
    inspector(session)
    python(session, "-m", "tests.clients", *session.posargs)
    python(session, "-m", "tests.clients.installed")


@nox.session(default=False)
def bump(session: nox.Session) -> None:
    """Give every package one new version: `nox -s bump -- 0.2.0`."""
    python(session, "-m", "tests.architecture.versions", *session.posargs)
    python(session, "-m", "cloche_codegen", "build")


def inspector(session: nox.Session) -> None:
    """Have the MCP Inspector under .cache/node, where the end-to-end tests look for it."""
    python(session, "-m", "tests.inspector")
