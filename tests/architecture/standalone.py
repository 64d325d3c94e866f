"""Install each wheel alone, import all of it, and compare what came along with the allowed list.

`nox -s standalone` runs this, with the names of package folders to check fewer. It proves what
architecture 3.11 promises: one distribution of the workspace is useful without the others, as the first
example of its README says. With `cli` comes what `abx mcp deploy` writes, started and called, and the
image that its recipe makes.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.architecture import image
from tests.architecture.artefact import check_artefact
from tests.architecture.readme_example import run_example
from tests.architecture.wheelhouse import build, download, environment, install, run
from tests.architecture.workspace import ALLOWED_THIRD_PARTY, Package, packages

# Runs in the new environment: imports every module and tells which distributions are there.
_INSIDE = """
import importlib, json, pkgutil, sys
from importlib import metadata
name, skipped = sys.argv[1], tuple(sys.argv[2].split())
package = importlib.import_module(name)
imported = 1
for module in pkgutil.walk_packages(package.__path__, name + "."):
    if module.name.endswith("__main__") or module.name.startswith(skipped or ("-",)):
        continue
    importlib.import_module(module.name)
    imported += 1
print(json.dumps({"modules": imported, "distributions": sorted(d.metadata["Name"] for d in metadata.distributions())}))
"""

# Modules of a package that need an extra, which a plain install does not have.
_NEEDS_EXTRA = {
    "cli": "cloche_cli.http_server cloche_cli.stdio_server",
    "contract": "cloche_contract.serving",
    "testkit": "cloche_testkit.mcp_client",
}


@dataclass(frozen=True)
class Finding:
    """What installing one package alone showed."""

    package: str
    modules: int
    seconds: float
    problems: list[str]


def normal(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def siblings(package: Package) -> list[Package]:
    """The package and every package of the workspace that it needs."""
    by_name = {normal(one.name): one for one in packages()}
    found: dict[str, Package] = {}
    waiting = [package]
    while waiting:
        current = waiting.pop()
        found[current.key] = current
        names = [normal(Requirement(line).name) for line in current.requirements]
        waiting += [by_name[name] for name in names if name in by_name and by_name[name].key not in found]
    return list(found.values())


def closure(requirements: Iterable[str]) -> set[str]:
    """These third-party requirements with all that they need, as the development environment has them."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        found.add(normal(wanted.name))
        waiting += [line for line in map(Requirement, metadata.requires(wanted.name) or []) if _applies(line, wanted)]
    return found


def _applies(line: Requirement, wanted: Requirement) -> bool:
    """Whether a requirement holds on this platform for the extras that were asked for."""
    return line.marker is None or any(line.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras))


def allowed_distributions(package: Package) -> set[str]:
    """Everything that may be installed when a user asks for this package alone."""
    together = siblings(package)
    third_party = {name for one in together for name in ALLOWED_THIRD_PARTY[one.key]}
    if any("cloche-contract[mcp]" in line for one in together for line in one.requirements):
        third_party |= {"mcp", "anyio"}
    here = {name for name in third_party if _installed(name)}
    return closure(here) | {normal(one.name) for one in together}


def _installed(name: str) -> bool:
    """Whether this Python needs the distribution at all: tomli is for 3.10 only."""
    return next(iter(metadata.distributions(name=name)), None) is not None


def check(package: Package, wheelhouse: Path) -> Finding:
    """Install one package in an environment of its own and look at what is there."""
    started = time.monotonic()
    python = environment(wheelhouse / f"venv-{package.key}")
    install(python, wheelhouse, [f"{package.name}=={package.project['version']}"])
    inside = [str(python), "-I", "-c", _INSIDE, package.source.name, _NEEDS_EXTRA.get(package.key, "")]
    report = json.loads(run(inside, wheelhouse).splitlines()[-1])
    extra = {normal(name) for name in report["distributions"]} - allowed_distributions(package)
    problems = [f"installs {name}, which is not on its list" for name in sorted(extra)]
    for script in package.project.get("scripts", {}):
        run([str(python.parent / str(script)), "--help"], wheelhouse)
    problems += run_example(package, python, wheelhouse)
    return Finding(package.key, int(report["modules"]), time.monotonic() - started, problems)


def deployed(wheels: Mapping[str, Path], wheelhouse: Path) -> Finding:
    """Start what base `cloche` writes for a deployment, in an environment of its own."""
    started = time.monotonic()
    minor = check_artefact(wheelhouse / "venv-cli" / "bin" / "abx", wheels, wheelhouse, _INSIDE)
    return Finding(f"artefact 3.{minor}", 0, time.monotonic() - started, [])


def in_an_image(wheelhouse: Path) -> Finding:
    """Build the image recipe of a deployment, and run it, where this machine can."""
    started = time.monotonic()
    reason = image.missing()
    if not reason:
        image.check_image(wheelhouse / "venv-cli" / "bin" / "abx", wheelhouse)
    name = f"image (not tried: {reason})" if reason else "image"
    return Finding(name, 0, time.monotonic() - started, [])


def main(chosen: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="cloche-standalone-") as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        building = {package.key: pool.submit(build, package, folder) for package in packages()}
        wheels = {key: future.result() for key, future in building.items()}
        download(map(str, wheels.values()), folder)
        wanted = [package for package in packages() if not chosen or package.key in chosen]
        findings = [future.result() for future in [pool.submit(check, package, folder) for package in wanted]]
        if not chosen or "cli" in chosen:
            both = [pool.submit(deployed, wheels, folder), pool.submit(in_an_image, folder)]
            findings += [future.result() for future in both]
    for finding in findings:
        verdict = "; ".join(finding.problems) or "alone, as allowed"
        sys.stdout.write(f"{finding.package:14} {finding.modules:4} modules  {finding.seconds:5.1f} s  {verdict}\n")
    return 1 if any(finding.problems for finding in findings) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
