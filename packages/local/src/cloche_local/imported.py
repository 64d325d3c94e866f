"""Templates that somebody imported: root file systems below the state folder. Sandboxes stand on them, unchanged.

`STATE/.template-NAME` is the root itself, `STATE/.template-NAME.json` what is known of it. It appears whole, and goes
only while no sandbox stands on it.
"""

import io
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import IO, Final, cast

from cloche_local import oci
from cloche_local.paths import find_paths
from cloche_local.source_folder import copy_folder
from cloche_local.state import StateFolder
from cloche_local.tree import Counts, Facts, Tree, TreeRefused, remove_tree

PREFIX: Final = ".template-"
IMPORTING_PREFIX: Final = ".importing-"
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
PYTHON_FOLDER: Final = "/opt/cloche/python"
"""Where the Python of run_code is shown; its own place, so that it hides nothing of the template."""

_USER: Final = 1000
_FOLDERS: Final = {
    "/app": (0o755, True),
    "/dev": (0o755, False),
    "/home": (0o755, False),
    "/home/user": (0o755, True),
    PYTHON_FOLDER: (0o755, False),
    "/proc": (0o555, False),
    "/root": (0o700, False),
    "/run": (0o755, False),
    "/tmp": (0o1777, False),
    "/var/tmp": (0o1777, False),
}
_FILES: Final = {
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/resolv.conf": "# This sandbox has no network.\n",
}
_ACCOUNTS: Final = {
    "/etc/passwd": {"0": "root:x:0:0:root:/root:/bin/sh\n", "1000": "user:x:1000:1000:user:/home/user:/bin/sh\n"},
    "/etc/group": {"0": "root:x:0:\n", "1000": "user:x:1000:\n"},
}
_FILE_BYTES: Final = 4 << 20


class NameTaken(Exception):
    """There is a template of that name."""


class NotThere(Exception):
    """There is no imported template of that name."""


class InUse(Exception):
    """A sandbox stands on the template, or is about to."""


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported template."""

    name: str
    kind: str
    digest: str
    imported_at: float
    size: int
    entries: int
    skipped: int
    has_shell: bool
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    workdir: str = ""


def state_of(settings: Mapping[str, str], environ: Mapping[str, str]) -> StateFolder:
    """The state folder that these settings mean."""
    return StateFolder(find_paths(settings, environ, host_root=is_host_root()).state)


def is_host_root() -> bool:
    """Whether we may give files to others."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def find(state_path: str, name: str) -> tuple[str, Imported] | None:
    """The root of an imported template, and what is known of it."""
    if not NAME.fullmatch(name):
        return None
    root = f"{state_path}/{PREFIX}{name}"
    try:
        with open(f"{root}.json", encoding="utf-8") as file:
            told = json.loads(file.read(_FILE_BYTES))
        found = Imported(**told)
    except (OSError, ValueError, TypeError):
        return None
    return (root, found) if found.name == name and os.path.isdir(root) else None


def every(state_path: str) -> Iterator[Imported]:
    """The imported templates, by name."""
    with suppress(FileNotFoundError):
        for entry in sorted(os.listdir(state_path)):
            found = find(state_path, entry.removeprefix(PREFIX)) if entry.startswith(PREFIX) else None
            if found is not None:
                yield found[1]


def import_template(state: StateFolder, name: str, source: str, *, owners: bool, now: float) -> Imported:
    """Import a folder with a root file system, or an image in the OCI layout (a folder or an uncompressed archive).

    Args:
        owners: whether entries keep their owners; only root can do that.

    Raises:
        NameTaken: remove that one first.
        TreeRefused: the source is no root file system, or hostile.
        OSError: something cannot be read or written.
    """
    import fcntl

    if find(state.path, name) is not None:
        raise NameTaken
    state.ensure()
    growing = tempfile.mkdtemp(prefix=IMPORTING_PREFIX, dir=state.path)
    held = os.open(growing, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)  # a prune leaves alone what somebody holds
        tree = Tree(growing, owners)
        kind, image = _fill(tree, source)
        _complete(tree)
        found = _describe(name, kind, image, tree, now)
        tree.finish()
        _publish(state, growing, found)
    except BaseException:
        if os.path.lexists(growing):
            remove_tree(growing)
        raise
    finally:
        os.close(held)
    return found


def remove_template(state: StateFolder, name: str) -> None:
    """Remove an imported template.

    Raises:
        NotThere, InUse.
        OSError: something of it stays.
    """
    import fcntl

    found = find(state.path, name)
    if found is None:
        raise NotThere
    root = found[0]
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        records, unreadable = state.look()
        if unreadable or any(record.skeleton in ("", os.path.basename(root)) for record in records):
            raise InUse
        gone = f"{state.path}/{IMPORTING_PREFIX}{name}-{os.getpid()}"
        # Renamed while it is held: whoever waits for it finds nothing at its name.
        os.rename(root, gone)
        os.unlink(f"{root}.json")
    except BlockingIOError as error:
        raise InUse from error
    finally:
        os.close(held)
    remove_tree(gone)


def _fill(tree: Tree, source: str) -> tuple[str, oci.Image | None]:
    if os.path.isdir(source) and not oci.is_layout(source):
        copy_folder(source, tree)
        return "folder", None
    with oci.opened(source) as blobs:
        image = oci.read_image(blobs)
        tree.folder("/", Facts(0o755))
        for layer in image.layers:
            oci.apply_layer(blobs, layer, tree)
    return "image", image


def _complete(tree: Tree) -> None:
    """Make what every sandbox needs: places for mounts, and an account for whoever runs in it."""
    if not any(os.path.lexists(tree.where(name)) for name in ("/bin", "/usr", "/lib", "/app", "/etc")):
        raise TreeRefused("it does not look like the root of a file system")
    tree.folder("/", Facts(0o755))  # whatever it was told: whoever runs inside must be able to walk through
    for name, (mode, owned) in _FOLDERS.items():
        path = tree.where(name)
        if stat.S_ISLNK(_mode(path)) or not os.path.isdir(path):
            owner = _USER if owned else 0
            tree.folder(name, Facts(mode, owner, owner))
    for name, text in _FILES.items():
        _write(tree, name, text.encode())
    for name, accounts in _ACCOUNTS.items():
        lines = _read(tree.where(name)).decode("utf-8", "surrogateescape").splitlines(keepends=True)
        known = {line.split(":")[2] for line in lines if line.count(":") > 2}
        added = [line for number, line in accounts.items() if number not in known]
        if added:
            lines[-1:] = [f"{line.rstrip(chr(10))}\n" for line in lines[-1:]]
            _write(tree, name, "".join([*lines, *added]).encode("utf-8", "surrogateescape"))


def _write(tree: Tree, name: str, content: bytes) -> None:
    tree.file(name, Facts(0o644), cast("IO[bytes]", io.BytesIO(content)), len(content))


def _read(path: str) -> bytes:
    """A small file of the tree; a link there is not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        return file.read(_FILE_BYTES)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _describe(name: str, kind: str, image: oci.Image | None, tree: Tree, now: float) -> Imported:
    counts: Counts = tree.counts
    return Imported(
        name=name,
        kind=kind,
        digest="" if image is None else image.digest,
        imported_at=now,
        size=counts.bytes,
        entries=counts.entries,
        skipped=counts.skipped,
        # Followed below the root, as the sandbox will.
        has_shell=os.path.lexists(tree.where("/bin/sh")),
        env={} if image is None else image.env,
        workdir="" if image is None or not os.path.isdir(tree.where(image.workdir)) else image.workdir,
    )


def _publish(state: StateFolder, growing: str, found: Imported) -> None:
    """Give it its name, and then its description: only with both is it a template."""
    root = f"{state.path}/{PREFIX}{found.name}"
    fd, written = tempfile.mkstemp(prefix=IMPORTING_PREFIX, dir=state.path)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(asdict(found), file)
        try:
            os.rename(growing, root)
        except OSError as error:
            raise NameTaken from error
        os.replace(written, f"{root}.json")
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(written)
        raise
