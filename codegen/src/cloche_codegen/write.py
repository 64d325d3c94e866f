"""The only module that changes the tree: atomic writes, and the comparison that `check` prints."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cloche_codegen.plan import Output


@dataclass(frozen=True)
class Finding:
    """One file that is not as the schemas say."""

    kind: str
    path: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        shown = list(self.sources[:5])
        more = len(self.sources) - len(shown)
        return f"{self.kind}: {self.path} (from {', '.join(shown)}{f' and {more} more' if more else ''})"


def compare(repository: Path, outputs: list[Output], roots: tuple[str, ...]) -> list[Finding]:
    """Every changed, missing and stray file."""
    findings: list[Finding] = []
    for output in outputs:
        file = repository / output.path
        if not file.is_file():
            findings.append(Finding("missing", output.path, output.sources))
        elif file.read_bytes() != output.text.encode():
            findings.append(Finding("changed", output.path, output.sources))
    known = {output.path: output.sources for output in outputs}
    strays = [path for path in _present(repository, roots) if path not in known]
    return findings + [Finding("stray", path, _nearest(path, known)) for path in strays]


def _present(repository: Path, roots: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for root in roots:
        for folder, names, files in os.walk(repository / root):
            names[:] = sorted(name for name in names if name != "__pycache__")
            found += [(Path(folder) / file).relative_to(repository).as_posix() for file in sorted(files)]
    return found


def _nearest(path: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Where a stray file would have to come from: what owns the files next to it, else all schemas."""
    folder = str(Path(path).parent)
    beside = {source for other, sources in known.items() if str(Path(other).parent) == folder for source in sources}
    return tuple(sorted(beside)) or ("schemas/",)


def write(repository: Path, outputs: list[Output], roots: tuple[str, ...]) -> list[Finding]:
    """Make the tree as the schemas say; return what was not."""
    findings = compare(repository, outputs, roots)
    by_path = {output.path: output for output in outputs}
    for finding in findings:
        target = repository / finding.path
        if finding.kind == "stray":
            target.unlink()
            _prune(target.parent, repository)
        else:
            _replace(target, by_path[finding.path].text)
    return findings


def _prune(folder: Path, repository: Path) -> None:
    while folder != repository and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _replace(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
    # The mode that git knows, whatever the umask of whoever runs this.
    os.chmod(name, 0o644)
    os.replace(name, target)
