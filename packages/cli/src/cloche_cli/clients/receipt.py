"""What an installation leaves behind for its removal: the bytes that were there before, and what it had to make.

Both lie in the state folder, not beside the client's file: a project must not get a second file that somebody commits,
and a copy of a file with keys must not be readable by more people than the file.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Receipt:
    """One installation.

    Args:
        path: the file, its links followed.
        made: the keys above our entry that were not there.
        folders: the folders that were not there.
        written: the hash of the bytes that the installation wrote.
        had_file: whether there was a file before, whose bytes are in the backup.
        whole: whether the backup is the file without our entry, so that a removal may put it back.
    """

    path: str
    client: str
    scope: str
    made: tuple[str, ...]
    folders: tuple[str, ...]
    written: str
    had_file: bool
    whole: bool


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Receipts:
    """The receipts of this user."""

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        state = environ.get("XDG_STATE_HOME", "")
        base = Path(state) if os.path.isabs(state) else home / ".local" / "state"
        self.folder = base / "cloche" / "mcp" / "installed"

    def backup_path(self, target: Path) -> Path:
        """Where the bytes from before are kept."""
        return self.folder / f"{_name(target)}{target.suffix}.backup"

    def load(self, target: Path) -> Receipt | None:
        """The receipt of a file; None where there is none that can be read."""
        try:
            data: dict[str, Any] = json.loads((self.folder / f"{_name(target)}.json").read_bytes())
            data["made"], data["folders"] = tuple(data["made"]), tuple(data["folders"])
            return Receipt(**data)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def backup(self, target: Path) -> bytes | None:
        """The bytes from before."""
        try:
            return self.backup_path(target).read_bytes()
        except OSError:
            return None

    def keep(self, target: Path, data: bytes | None) -> None:
        """Keep the bytes from before, which must be there before the file is touched.

        Raises:
            OSError: they cannot be kept.
        """
        if data is not None:
            self._write(self.backup_path(target), data)

    def save(self, receipt: Receipt) -> None:
        """Write the receipt.

        Raises:
            OSError: it cannot be written.
        """
        document = json.dumps(asdict(receipt), indent=1).encode()
        self._write(self.folder / f"{_name(Path(receipt.path))}.json", document)

    def drop(self, target: Path) -> None:
        """Forget the file."""
        for path in (self.folder / f"{_name(target)}.json", self.backup_path(target)):
            path.unlink(missing_ok=True)

    def _write(self, path: Path, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _name(target: Path) -> str:
    return hashlib.sha256(os.fsencode(target)).hexdigest()[:24]
