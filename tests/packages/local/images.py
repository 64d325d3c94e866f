"""Small root file systems, and images of the Open Container Initiative, made by the tests themselves."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = ("sh", "cat", "env", "id", "ls")


def small_root(folder: Path) -> Path:
    """A root with a few programs of this machine and the libraries that they load."""
    (folder / "bin").mkdir(parents=True)
    (folder / "etc").mkdir()
    (folder / "etc" / "motd").write_text("small\n")
    for program in PROGRAMS:
        found = shutil.which(program, path="/usr/bin:/bin")
        assert found is not None
        shutil.copy(Path(found).resolve(), folder / "bin" / program)
        told = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            target = folder / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(Path(library).resolve(), target)
    return folder


@dataclass(frozen=True)
class Entry:
    """One entry of a layer, as a hostile or an honest builder writes it."""

    name: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    target: str = ""
    uid: int = 0
    gid: int = 0


def folder(name: str, mode: int = 0o755) -> Entry:
    return Entry(name, kind=tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> Entry:
    return Entry(name, kind=tarfile.SYMTYPE, mode=0o777, target=target)


def hard(name: str, target: str) -> Entry:
    return Entry(name, kind=tarfile.LNKTYPE, target=target)


def layer(entries: Iterable[Entry], *, zipped: bool = False) -> bytes:
    """The tar archive of a layer."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            member.type, member.mode, member.linkname = entry.kind, entry.mode, entry.target
            member.uid, member.gid = entry.uid, entry.gid
            member.size = len(entry.content) if entry.kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(entry.content))
    return gzip.compress(raw.getvalue()) if zipped else raw.getvalue()


def entries_of(root: Path) -> list[Entry]:
    """What lies in a folder, as entries of a layer."""
    found: list[Entry] = []
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir():
            found.append(folder(name))
        else:
            found.append(Entry(name, path.read_bytes(), mode=path.stat().st_mode & 0o777))
    return found


@dataclass
class Layout:
    """An image in the making; tests change its blobs to damage it."""

    layers: Sequence[bytes]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    platforms: Sequence[Mapping[str, str]] = ()
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __post_init__(self) -> None:
        config = self.add(json.dumps({"os": "linux", "config": self.config}).encode())
        layers = [{"digest": self.add(one), "size": len(one)} for one in self.layers]
        manifest = self.add(json.dumps({"config": {"digest": config}, "layers": layers}).encode())
        entries: list[Mapping[str, Any]] = [{"digest": manifest, "platform": one} for one in self.platforms]
        self.manifests: Any = entries or [{"digest": manifest}]

    def add(self, content: bytes) -> str:
        """Keep a blob; returns its digest."""
        name = hashlib.sha256(content).hexdigest()
        self.blobs[name] = content
        return f"sha256:{name}"

    def files(self) -> Mapping[str, bytes]:
        return {
            "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
            "index.json": json.dumps({"schemaVersion": 2, "manifests": self.manifests}).encode(),
            **{f"blobs/sha256/{name}": content for name, content in self.blobs.items()},
        }

    def folder(self, path: Path) -> Path:
        """Write it as a folder."""
        for name, content in self.files().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path

    def archive(self, path: Path) -> Path:
        """Write it as one file."""
        path.write_bytes(layer(Entry(name, content) for name, content in self.files().items()))
        return path
