"""From the schemas to the sorted list of every output."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloche_codegen import lint
from cloche_codegen.emit import agent, contract, models
from cloche_codegen.ir import tool_sets
from cloche_codegen.load import Library, load

CONTRACT = "packages/contract/src/cloche_contract/_gen"
AGENTD = "packages/agentd/src/cloche_agentd/_gen"


@dataclass(frozen=True)
class Output:
    """One file that the generator owns."""

    path: str
    text: str
    schemas: tuple[str, ...]


def roots() -> tuple[str, ...]:
    """Folders in which nothing but outputs may lie."""
    return (CONTRACT, AGENTD)


def outputs(repository: Path) -> list[Output]:
    """Everything that `build` writes, formatted, in a fixed order."""
    library = load(repository / "schemas")
    lint.check(library)
    sets = tool_sets(library)
    found: dict[str, tuple[str, list[str]]] = {}
    found.update({f"{CONTRACT}/{path}": value for path, value in contract.emit(library, sets).items()})
    found.update({f"{CONTRACT}/{path}": value for path, value in agent.emit_client(library).items()})
    found.update({f"{AGENTD}/{path}": value for path, value in agent.emit_agentd(library).items()})
    found.update(models.emit(library, sets, f"{CONTRACT}/models"))
    _packages(found)
    formatted = _formatted({path: text for path, (text, _) in found.items() if path.endswith(".py")})
    return [
        Output(path, formatted.get(path, text), tuple(sorted(schemas)))
        for path, (text, schemas) in sorted(found.items())
    ]


def _packages(found: dict[str, tuple[str, list[str]]]) -> None:
    """Every folder with Python in it is a package."""
    folders = {str(Path(path).parent) for path in found if path.endswith(".py")}
    for folder in sorted(folders | {f"{CONTRACT}/models"}):
        below = {schema for path, (_, schemas) in found.items() if path.startswith(f"{folder}/") for schema in schemas}
        found.setdefault(f"{folder}/__init__.py", ('"""Generated; do not edit. See schemas/."""\n', sorted(below)))


def _formatted(sources: Mapping[str, str]) -> dict[str, str]:
    """The sources as the pinned ruff formats them; its own settings, not those of the folder it runs in."""
    with tempfile.TemporaryDirectory() as scratch:
        for path, text in sources.items():
            file = Path(scratch) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        base = [sys.executable, "-m", "ruff"]
        options = ["--isolated", "--no-cache", "--quiet", "--target-version", "py310", "--line-length", "120"]
        known = 'lint.isort.known-first-party = ["cloche_contract"]'
        subprocess.run(
            [*base, "check", "--fix", "--select", "I,F401", "--config", known, *options, scratch], check=True
        )
        subprocess.run([*base, "format", *options, scratch], check=True)
        return {path: (Path(scratch) / path).read_text(encoding="utf-8") for path in sources}


__all__ = ["CONTRACT", "Library", "Output", "outputs", "roots"]
