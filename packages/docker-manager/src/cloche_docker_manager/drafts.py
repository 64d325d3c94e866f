"""What an export writes before it is whole: noted beforehand, so that what a killed manager left is found and removed.

Source: issue 7 (kill -9 of the manager); checklist 346.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from .owner import Owner, this_process
from .prune import remove_folder
from .reconcile import Leftover
from .registry import write_atomically

_NAME = re.compile(r"\.cloche-export-[0-9a-f]{16}\Z")


class Drafts:
    """Notes below the state directory, one for each export that is being written."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "drafts"

    @contextmanager
    def noted(self, parent: Path) -> Generator[str]:
        """Yield a name in `parent` for a draft. Whoever leaves has renamed or removed it.

        Raises:
            OSError: the note cannot be written.
        """
        name = f".cloche-export-{secrets.token_hex(8)}"
        note = self._folder / f"{name}.json"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(note, json.dumps({"parent": str(parent), "owner": asdict(this_process())}).encode())
        try:
            yield name
        finally:
            note.unlink()

    def sweep(self) -> list[Leftover]:
        """Remove the drafts of managers that are gone; return what was removed."""
        removed: list[Leftover] = []
        with suppress(OSError):
            for note in self._folder.glob(".cloche-export-*.json"):
                draft = _abandoned(note)
                if draft is None:
                    continue
                if draft.is_dir() and not draft.is_symlink():
                    remove_folder(draft)
                with suppress(FileNotFoundError, IsADirectoryError):
                    draft.unlink()
                if not os.path.lexists(draft):
                    note.unlink(missing_ok=True)
                    removed.append(Leftover("draft", draft.name))
        return removed


def _abandoned(note: Path) -> Path | None:
    """The draft of a note whose writer is gone."""
    try:
        said = cast("dict[str, Any]", json.loads(note.read_bytes()))
        owner = Owner(int(said["owner"]["pid"]), str(said["owner"]["started"]))
        parent = Path(str(said["parent"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    name = note.name.removesuffix(".json")
    return None if owner.alive or not parent.is_absolute() or not _NAME.match(name) else parent / name
