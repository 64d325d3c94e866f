"""Run `abx` in this process, with its output captured."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cloche_cli.main import main
from tests.packages.cli.ran import Abx, Ran


@pytest.fixture
def abx(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Abx:
    """Run `abx` with these words, in an empty home and folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def run(words: Sequence[str]) -> Ran:
        capsys.readouterr()
        status = main(list(words))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run
