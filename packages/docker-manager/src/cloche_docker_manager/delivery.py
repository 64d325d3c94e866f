"""What is delivered into a container: a Python with its own loader and libraries, and the agent. Blocks.

Both are copied once into the cache, by what they are made of, and bound read-only. An image needs neither Python nor
a C library.

Source: docker.md of the design, "Images need no Python".
"""

from __future__ import annotations

import hashlib
import os
import py_compile
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from cloche_contract.errors import BackendUnavailable
from cloche_contract.kernel import plugins

from .prune import remove_folder

LOADER = "loader"
_NOT_NEEDED = "ensurepip idlelib lib2to3 test tests tkinter turtledemo"
_SKIPPED = frozenset({"__pycache__", "site-packages", "dist-packages", *_NOT_NEEDED.split()})
_TAG = sys.implementation.cache_tag or "none"
_LIBRARY = re.compile(rb"(?:=> )?(/\S+) \(0x")


def agent_folder(cache_dir: Path) -> Path:
    """The folder that holds `cloche_agentd`, as the installed agent describes it.

    Raises:
        BackendUnavailable: no agent is installed, or the cache cannot be used.
    """
    try:
        source = Path(plugins.load(plugins.AGENT, "agentd")()["folder"])
    except (plugins.PluginMissing, ImportError) as exc:
        raise BackendUnavailable(cause="docker_python_unusable") from exc
    files = sorted(path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256(f"2,{_TAG}".encode())
    for path in files:
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")

    def copy(target: Path) -> None:
        for path in files:
            _copy(path, target / source.name / path.relative_to(source))
        _compile(target)

    return _made(cache_dir, f"agent-{digest.hexdigest()[:32]}", copy)


def python_folder(cache_dir: Path) -> Path:
    """A copy of this process's Python: `bin/python3`, its standard library, `lib` with libraries, and the loader.

    Raises:
        BackendUnavailable: this Python cannot be copied like that, or the cache cannot be used.
    """
    program = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    try:
        facts = program.stat()
        loader = _loader_of(program)
    except (OSError, ValueError) as exc:
        raise BackendUnavailable(cause="docker_python_unusable") from exc
    name = hashlib.sha256(f"2,{program},{library},{facts.st_size},{facts.st_mtime_ns},{sys.version}".encode())

    def copy(target: Path) -> None:
        _copy_python(target, program, library, loader)

    return _made(cache_dir, f"python-{name.hexdigest()[:32]}", copy)


def _made(cache_dir: Path, name: str, copy: Callable[[Path], None]) -> Path:
    """Make a folder of the cache unless it is there; whoever loses a race uses the winner's."""
    place = cache_dir / "runtimes" / name
    if place.is_dir():
        return place
    draft = place.with_name(f".{name}.{secrets.token_hex(6)}")
    try:
        draft.mkdir(mode=0o755, parents=True)
        copy(draft)
        with suppress(OSError):
            draft.rename(place)
    except OSError as exc:
        raise BackendUnavailable(cause="docker_state_unusable") from exc
    finally:
        if draft.exists():
            remove_folder(draft)
    return place


def _copy_python(target: Path, program: Path, library: Path, loader: Path) -> None:
    _copy(program, target / "bin/python3", 0o755)
    _copy(loader, target / LOADER, 0o755)
    extensions: list[Path] = []
    for path in _files(library):
        extensions += [path] if path.suffix == ".so" else []
        # The name that the interpreter looks for, wherever this one keeps its library.
        _copy(path, target / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / path.relative_to(library))
    dynamic = Path(sysconfig.get_config_var("DESTSHARED") or library / "lib-dynload")
    if not dynamic.is_relative_to(library):
        extensions += list(dynamic.glob("*.so"))
        for path in dynamic.glob("*.so"):
            _copy(path, target / "lib" / library.name / "lib-dynload" / path.name)
    for path in _libraries_of(loader, [program, *extensions]):
        _copy(path, target / "lib" / path.name)


def _compile(folder: Path) -> None:
    """Compile every module once, here: inside nothing can be written, and each start would compile all of them."""
    for path in folder.rglob("*.py"):
        with suppress(py_compile.PyCompileError):
            py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def _files(library: Path) -> Iterable[Path]:
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(set(folders) - _SKIPPED)
        folders[:] = [name for name in folders if not name.startswith("config-")]
        for name in sorted(names):
            if not name.endswith((".pyc", ".a")):
                yield Path(folder) / name
            compiled = Path(folder) / "__pycache__" / f"{name.removesuffix('.py')}.{_TAG}.pyc"
            # It names time and size of its source, which the copy keeps.
            if name.endswith(".py") and compiled.exists():
                yield compiled


def _copy(source: Path, target: Path, mode: int | None = None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    # Readable for whoever runs inside, whatever the owner of the source has set.
    target.chmod(mode or (0o755 if os.access(source, os.X_OK) else 0o644))
    times = source.stat()
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def _loader_of(program: Path) -> Path:
    """The dynamic loader that an ELF program names (elf(5), PT_INTERP).

    Raises:
        ValueError: it names none.
    """
    head = program.read_bytes()[:65536]
    found = re.search(rb"\0(/[\x21-\x7e]*ld[\x21-\x7e]*\.so[\x21-\x7e]*)\0", head)
    if not head.startswith(b"\x7fELF") or found is None:
        raise ValueError("not linked dynamically")
    return Path(os.fsdecode(found[1])).resolve(strict=True)


def _libraries_of(loader: Path, programs: list[Path]) -> set[Path]:
    """Every shared object that the loader would load for these programs, by its name as they ask for it."""
    found: set[Path] = set()
    for program in programs:
        listed = subprocess.run([loader, "--list", program], capture_output=True, check=False, env={}).stdout
        found.update(Path(os.fsdecode(path)) for path in _LIBRARY.findall(listed))
    return {path for path in found if path.exists() and path.resolve() != loader}
