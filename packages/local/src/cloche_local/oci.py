"""Images in the layout of the Open Container Initiative: a folder, or one file that `docker save` and others write.

Nothing in it is trusted: each blob is compared with its digest before it is read, and what it names becomes entries of
a `Tree`. Source: image-spec, "layout", "manifest", "layer"; faults P6, P14.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import tarfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final, Protocol, cast

from cloche_local.tree import Facts, Tree, TreeRefused

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_DOCUMENT_BYTES: Final = 8 << 20
_LAYERS: Final = 500
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_GZIP: Final = b"\x1f\x8b"
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
# One read of the tar reader: a header that claims to be longer is no header.
_MOST_AT_ONCE: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """What an image says beside its files."""

    digest: str
    layers: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str


class Blobs(Protocol):
    """Where the files of a layout are."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file of the layout.

        Raises:
            TreeRefused: there is none of that name.
        """
        ...


class _Folder:
    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, name: str) -> IO[bytes]:
        try:
            fd = os.open(f"{self._path}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise TreeRefused("a part of the image is missing") from error
        return open(fd, "rb")


class _Archive:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members = {member.name.removeprefix("./"): member for member in archive if member.isreg()}

    def open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        found = None if member is None else self._archive.extractfile(member)
        if found is None:
            raise TreeRefused("a part of the image is missing")
        return found


@contextmanager
def opened(path: str) -> Generator[Blobs]:
    """A layout, as a folder or as one file.

    Raises:
        TreeRefused: it is neither.
        OSError: it cannot be read.
    """
    if os.path.isdir(path):
        yield _Folder(path)
        return
    with open(path, "rb") as file:
        try:
            archive = _Archive(tarfile.TarFile(fileobj=cast("IO[bytes]", _Bounded(file)), errorlevel=2))
        except (tarfile.TarError, ValueError) as error:
            raise TreeRefused("it is no tar archive; one that is compressed has to be decompressed first") from error
        yield archive


def is_layout(path: str) -> bool:
    """Whether a folder is an image rather than a root file system."""
    return os.path.isfile(f"{path}/oci-layout") and os.path.isfile(f"{path}/index.json")


def read_image(blobs: Blobs) -> Image:
    """Find the image for this machine.

    Raises:
        TreeRefused: there is none, or more than one, or it is damaged.
    """
    with blobs.open("index.json") as file:
        index = _document(file.read(_DOCUMENT_BYTES))
    digest, manifest = _manifest(blobs, index, depth=0)
    layers = [_text(layer, "digest") for layer in _list(manifest, "layers")]
    if not layers or len(layers) > _LAYERS:
        raise TreeRefused("the image has no layers, or too many")
    config = _document(_blob(blobs, _text(_object(manifest, "config"), "digest")))
    settings = _object(config, "config")
    pairs = [str(line).partition("=") for line in _list(settings, "Env")]
    workdir = settings.get("WorkingDir")
    return Image(
        digest,
        tuple(layers),
        {name: value for name, equals, value in pairs if equals and name and "\0" not in value},
        workdir if isinstance(workdir, str) and workdir.startswith("/") else "",
    )


def _manifest(blobs: Blobs, index: Mapping[str, Any], depth: int) -> tuple[str, Mapping[str, Any]]:
    """Follow indexes down to the one manifest that is for this machine."""
    found = [entry for entry in map(_mapping, _list(index, "manifests")) if _fits(entry)]
    if len(found) > 1:
        found = [entry for entry in found if "platform" in entry] or found
    if len(found) != 1 or depth > 3:
        raise TreeRefused("it has not exactly one image for this machine")
    digest = _text(found[0], "digest")
    document = _document(_blob(blobs, digest))
    return _manifest(blobs, document, depth + 1) if "manifests" in document else (digest, document)


def _fits(entry: Mapping[str, Any]) -> bool:
    wanted = _MACHINES.get(platform.machine(), platform.machine())
    told = entry.get("platform")
    if not isinstance(told, dict):
        return True
    told = cast("Mapping[str, Any]", told)
    return told.get("os") == "linux" and told.get("architecture") == wanted


def apply_layer(blobs: Blobs, digest: str, tree: Tree) -> None:
    """Write one layer over what is there.

    Raises:
        TreeRefused: it is damaged, in a form that we do not read, or not fit for a root.
    """
    with _verified(blobs, digest) as file:
        start = file.read(2)
        file.seek(0)
        plain = cast("IO[bytes]", gzip.GzipFile(fileobj=file) if start == _GZIP else file)
        try:
            with tarfile.open(fileobj=cast("IO[bytes]", _Bounded(plain)), mode="r:", errorlevel=2) as layer:
                _apply(layer, tree)
        except (tarfile.TarError, EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
            raise TreeRefused("a layer of it is no tar archive, plain or with gzip") from error


def _apply(layer: tarfile.TarFile, tree: Tree) -> None:
    written: set[str] = set()
    kept = cast("list[tarfile.TarInfo]", vars(layer)["members"])
    while (member := layer.next()) is not None:
        kept.clear()  # the reader would hold all of them until its end
        if member.name.startswith("/"):
            raise TreeRefused("a name in it leads out of it")
        folder, _, name = member.name.rstrip("/").rpartition("/")
        if name == _OPAQUE:
            tree.empty(folder, written)
        elif name.startswith(_WHITEOUT):
            hidden = name.removeprefix(_WHITEOUT)
            if hidden in ("", ".", ".."):
                raise TreeRefused("a deletion in it has no name")
            tree.remove(f"{folder}/{hidden}", written)
        elif _write(layer, member, tree):
            path = tree.where(member.name)
            while path not in written and len(path) > len(tree.root):
                written.add(path)
                path = os.path.dirname(path)


def _write(layer: tarfile.TarFile, member: tarfile.TarInfo, tree: Tree) -> bool:
    facts = Facts(member.mode, member.uid, member.gid, max(float(member.mtime), 0.0))
    if member.isdir():
        tree.folder(member.name, facts)
    elif member.isreg():
        content = layer.extractfile(member)
        assert content is not None  # it is a file
        tree.file(member.name, facts, content, member.size)
    elif member.issym():
        tree.link(member.name, facts, member.linkname)
    elif member.islnk():
        tree.hard_link(member.name, member.linkname)
    else:
        tree.skip()
        return False
    return True


# -- blobs ------------------------------------------------------------------------------------------------------------


@contextmanager
def _verified(blobs: Blobs, digest: str) -> Generator[IO[bytes]]:
    """A blob whose content is what its digest says."""
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise TreeRefused("a part of the image is named by something else than SHA-256")
    with blobs.open(f"blobs/sha256/{match[1]}") as file:
        found = hashlib.sha256()
        while part := file.read(1 << 20):
            found.update(part)
        if found.hexdigest() != match[1]:
            raise TreeRefused("a part of the image is not what its digest says")
        file.seek(0)
        yield file


def _blob(blobs: Blobs, digest: str) -> bytes:
    with _verified(blobs, digest) as file:
        return file.read(_DOCUMENT_BYTES)


def _document(raw: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise TreeRefused("a description in the image is damaged") from error


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TreeRefused("a description in the image is damaged")
    return cast("Mapping[str, Any]", value)


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _mapping(document.get(key) or {})


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = cast("object", document.get(key) or [])
    if not isinstance(value, list):
        raise TreeRefused("a description in the image is damaged")
    return cast("list[Any]", value)


def _text(document: object, key: str) -> str:
    value = _mapping(document).get(key)
    if not isinstance(value, str):
        raise TreeRefused("a description in the image is damaged")
    return value


class _Bounded(io.RawIOBase):
    """A file that hands out no more at once than any honest header has."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_AT_ONCE:
            raise TreeRefused("a header in it is too long")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
