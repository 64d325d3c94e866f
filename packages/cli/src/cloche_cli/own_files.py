"""Files that a command writes into somebody's folder, and knows again later.

The first line carries a hash of the rest: a file that somebody else wrote or changed is never replaced.
"""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cloche_cli.usage import Refused

_STAMP = re.compile(rb"# Written by abx mcp deploy\. Change it and it is yours: ([0-9a-f]{64})\n")
_SIZE_LIMIT = 1_048_576


def stamped(text: str) -> bytes:
    """The content of a file of ours."""
    body = text.encode()
    digest = hashlib.sha256(body).hexdigest()
    return f"# Written by abx mcp deploy. Change it and it is yours: {digest}\n".encode() + body


def own_text(path: Path) -> str | None:
    """What we wrote into a file; None where there is no such file, or it is not ours any more.

    Raises:
        OSError: it cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        content = file.read(_SIZE_LIMIT) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    match = _STAMP.match(content)
    body = content[match.end() :] if match else b""
    if match is None or hashlib.sha256(body).hexdigest().encode() != match[1]:
        return None
    return body.decode()


def refuse_foreign(paths: Mapping[str, Path], field: str) -> None:
    """Refuse where one of these files is there and not ours.

    Args:
        paths: the files, by the name that the refusal shows.

    Raises:
        Refused: which one it is; nothing was written.
    """
    for name, path in paths.items():
        try:
            foreign = own_text(path) is None and os.path.lexists(path)
        except OSError:
            foreign = True  # a link, a folder's name that is a file's, or not ours to read
        if foreign:
            raise Refused(
                "foreign_file",
                f"leads to {name}, which this command did not write, or which was changed since: move it away, or "
                "name another folder.",
                field=field,
            )


def write_all(contents: Mapping[Path, bytes], modes: Mapping[Path, int], field: str) -> None:
    """Write files, each one whole; their folder is made where it is missing.

    Raises:
        Refused: one cannot be written.
    """
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, content, modes.get(path, 0o644))
    except OSError as error:
        raise Refused("writable", "names a folder that cannot be written to.", field=field) from error


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write beside the place and rename: nobody reads half a file, and a secret is never readable by others."""
    fd, name = tempfile.mkstemp(prefix=".abx-", dir=path.parent)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            os.fchmod(fd, mode)
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
