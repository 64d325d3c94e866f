"""Read a client's file, and replace it in one step: whoever reads it sees the old bytes or the new, never a part."""

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloche_cli.clients.table import Scope

SIZE_LIMIT: Final = 32 * 1024 * 1024


class Unusable(Exception):
    """The file cannot be read or replaced; nothing was changed.

    Args:
        rule: a word for programs.
        what: a sentence without its subject.
        fix: what to do.
    """

    def __init__(self, rule: str, what: str, fix: str) -> None:
        super().__init__(rule, what, fix)
        self.rule = rule
        self.what = what
        self.fix = fix


@dataclass(frozen=True)
class ConfigFile:
    """A file as it was read.

    Args:
        path: as the table has it.
        target: where its links lead.
        data: its bytes; None where there is no file.
        status: what the system says of it; None as well.
    """

    path: Path
    target: Path
    data: bytes | None
    status: os.stat_result | None

    @property
    def readable_by_others(self) -> bool:
        return self.status is not None and bool(self.status.st_mode & 0o044) and os.name == "posix"


def read(path: Path, scope: Scope, workdir: Path) -> ConfigFile:
    """Read the file, through links.

    Raises:
        Unusable: it is no ordinary file, too large, not readable, or a link of a project leads out of the project.
    """
    target = Path(os.path.realpath(path))
    if scope == "project" and not target.is_relative_to(os.path.realpath(workdir)):
        # A project comes from somebody else: its links must not choose which of our files is written.
        raise Unusable("link", "leads out of this project by a link.", "Remove the link, or install with --scope user.")
    try:
        descriptor = os.open(target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return ConfigFile(path, target, None, None)
    except OSError as error:
        raise _refused("unreadable", "cannot be read", error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Unusable("no_file", "is no ordinary file.", "Move away what is there.")
    with open(descriptor, "rb") as file:
        data = file.read(SIZE_LIMIT + 1)
    if len(data) > SIZE_LIMIT:
        raise Unusable("maxLength", "is larger than 32 MiB.", "Look whether it is the client's file at all.")
    return ConfigFile(path, target, data, status)


def replace(file: ConfigFile, data: bytes, *, private: bool) -> list[Path]:
    """Put the bytes in the place of the file, and return the folders that had to be made.

    Mode and owner stay. A new file can be read by its owner only where it is `private`.

    Raises:
        Unusable: it cannot be written, or somebody else wrote it since it was read.
    """
    folder = file.target.parent
    temporary = folder / f".{file.target.name}.{secrets.token_hex(6)}.tmp"
    try:
        made = _folders(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(temporary, flags, 0o600 if private or file.status else 0o666), "wb") as written:
            _take_over(written.fileno(), file.status)
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
        _unchanged(file)
        os.replace(temporary, file.target)
        _sync_folder(folder)
    except OSError as error:
        raise _refused("unwritable", "cannot be written", error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return made


def remove(file: ConfigFile) -> None:
    """Remove the file.

    Raises:
        Unusable: it cannot be removed, or somebody else wrote it since it was read.
    """
    try:
        _unchanged(file)
        file.target.unlink(missing_ok=True)
    except OSError as error:
        raise _refused("unwritable", "cannot be removed", error) from error


def _folders(folder: Path) -> list[Path]:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _take_over(descriptor: int, status: os.stat_result | None) -> None:
    if status is None or os.name != "posix":
        return
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            pass  # an ordinary user in a shared folder: the new file is theirs, with the same mode
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _unchanged(file: ConfigFile) -> None:
    """A client that runs writes its file too: what it wrote meanwhile must not be lost."""
    try:
        now = file.target.read_bytes()
    except FileNotFoundError:
        now = None
    if now != file.data:
        raise Unusable("changed", "was changed by somebody else just now.", "End the client and run the command again.")


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(rule: str, what: str, error: OSError) -> Unusable:
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return Unusable(rule, f"{what}: {reason}.", "Give yourself the right to it, or choose another --scope.")
