"""From the schemas to the sorted list of every output."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloche_codegen import lint
from cloche_codegen.emit import agent, contract, http, manifest, models, openapi, publishing, reference, sync
from cloche_codegen.ir import tool_sets
from cloche_codegen.load import load

CONTRACT = "packages/contract/src/cloche_contract/_gen"
AGENTD = "packages/agentd/src/cloche_agentd/_gen"
SDK = f"{sync.SDK}/_gen"
REFERENCE = "docs/reference"
PUBLISHING = "packages/cli/_gen"
MANIFEST = f"{CONTRACT}/MANIFEST.json"

_ISORT = 'lint.isort.known-first-party = ["cloche_contract", "cloche_sdk"]'
_RUFF = ("--isolated", "--no-cache", "--quiet", "--target-version", "py310", "--line-length", "120")


@dataclass(frozen=True)
class Output:
    """One file that the generator owns, and the files that it comes from."""

    path: str
    text: str
    sources: tuple[str, ...]


def roots(repository: Path) -> tuple[str, ...]:
    """Folders in which nothing but outputs may lie: every `_gen` of a package, and the reference pages."""
    there = {folder.relative_to(repository).as_posix() for folder in repository.glob("packages/*/src/*/_gen")}
    return tuple(sorted({CONTRACT, AGENTD, PUBLISHING, REFERENCE} | there))


def outputs(repository: Path) -> list[Output]:
    """Everything that `build` writes, formatted, in a fixed order."""
    library = load(repository / "schemas")
    lint.check(library)
    sets = tool_sets(library)
    found: dict[str, tuple[str, list[str]]] = {}
    for folder, made in (
        (CONTRACT, contract.emit(library, sets)),
        (CONTRACT, agent.emit_client(library)),
        (CONTRACT, http.emit(library)),
        (CONTRACT, openapi.emit(library)),
        (AGENTD, agent.emit_agentd(library)),
        (SDK, sync.emit(repository)),
        (REFERENCE, reference.emit(library, sets)),
        (PUBLISHING, publishing.emit(library, sets, repository)),
    ):
        found.update({f"{folder}/{path}": value for path, value in made.items()})
    found.update(models.emit(library, sets, f"{CONTRACT}/models"))
    _packages(found)
    texts = {path: text for path, (text, _) in found.items()}
    texts.update(_formatted({path: text for path, text in texts.items() if path.endswith(".py")}))
    owned = {path: (texts[path], _sources(schemas)) for path, (_, schemas) in found.items()}
    owned[MANIFEST] = (manifest.emit(library, owned), ("schemas/CONTRACT_VERSION",))
    return [Output(path, text, sources) for path, (text, sources) in sorted(owned.items())]


def _sources(names: list[str]) -> tuple[str, ...]:
    """Full paths: schemas are named from their folder, everything else from the root."""
    return tuple(sorted({name if name.startswith("packages/") else f"schemas/{name}" for name in names}))


def _packages(found: dict[str, tuple[str, list[str]]]) -> None:
    """Every folder with Python in it is a package."""
    folders = {str(Path(path).parent) for path in found if path.endswith(".py") and not path.startswith(PUBLISHING)}
    for folder in sorted(folders | {f"{CONTRACT}/models"}):
        below = {name for path, (_, names) in found.items() if path.startswith(f"{folder}/") for name in names}
        found.setdefault(f"{folder}/__init__.py", ('"""Generated; do not edit. See schemas/."""\n', sorted(below)))


def _formatted(sources: Mapping[str, str]) -> dict[str, str]:
    """The sources as the pinned ruff formats them, by settings of its own, not those of the folder it runs in."""
    with tempfile.TemporaryDirectory() as scratch:
        for path, text in sources.items():
            file = Path(scratch) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for step in (["check", "--fix", "--select", "I,F401", "--config", _ISORT], ["format"]):
            subprocess.run([sys.executable, "-m", "ruff", *step, *_RUFF, scratch], check=True)
        return {path: (Path(scratch) / path).read_text(encoding="utf-8") for path in sources}
