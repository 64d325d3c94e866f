"""The templates of the local provider: a small root of our own over this host's /usr and Python, or one that was
imported. Nothing is downloaded.

`base` has the host's programs and a Python. `code-interpreter-v1` adds numpy, pandas and matplotlib where they are
installed beside Cloche (extra `code-interpreter`). What of /etc is shown is an allowlist.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cloche_local import imported
from cloche_local.spec import Bind, RootPlan

BASE = "base"
CODE_INTERPRETER = "code-interpreter-v1"
TEMPLATES = (BASE, CODE_INTERPRETER)
LIBRARIES = ("numpy", "pandas", "matplotlib")

SKELETON_PREFIX = ".skeleton-"
BUILDING_PREFIX = ".building-"
_VENV = "/opt/venv"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USER_ID = 1000
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Of the account that runs inside, and told apart from the rest.
_OUR_ENV = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "USER"})
# Links into /usr on a merged system, folders of their own on an older one.
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CERTIFICATES = ("/etc/ssl/certs", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs")
# Public facts of the machine that programs read; nothing that names users, networks or secrets.
_COPIED = (
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/mime.types",
    "etc/protocols",
    "etc/services",
    "etc/ssl/openssl.cnf",
    "etc/debian_version",
)
_COPIED_FOLDERS = ("etc/ld.so.conf.d", "etc/alternatives", "etc/R", "etc/fonts", "etc/fonts/conf.d")
_FILES = {
    "etc/passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        "user:x:1000:1000:user:/home/user:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "etc/hostname": "sandbox\n",
    "etc/resolv.conf": "# This sandbox has no network.\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "etc/shells": "/bin/sh\n",
    "etc/profile": "umask 022\n",
}
_FOLDERS = {
    "app": (0o755, True),
    "dev": (0o755, False),
    "home": (0o755, False),
    "home/user": (0o755, True),
    "mnt": (0o755, False),
    "opt": (0o755, False),
    "proc": (0o555, False),
    # Not listable, but passable: Python may live below it.
    "root": (0o711, False),
    "run": (0o755, False),
    "srv": (0o755, False),
    "tmp": (0o1777, False),
    "usr": (0o755, False),
    "var": (0o755, False),
    "var/cache": (0o755, False),
    "var/lib": (0o755, False),
    "var/log": (0o755, False),
    "var/tmp": (0o1777, False),
}


@dataclass(frozen=True, slots=True)
class Template:
    """What makes a template on this host."""

    name: str
    python_prefix: str
    python: str
    library_folder: str | None
    missing: tuple[str, ...]
    root: str = ""
    """The folder of an imported one; empty for ours."""
    env: tuple[tuple[str, str], ...] = ()
    workdir: str = ""


def find_template(name: str, state_path: str | None = None) -> Template | None:
    """The template of that name as this host can show it; None where there is none.

    Args:
        state_path: where imported ones are; left out, only ours are looked for.
    """
    if name not in TEMPLATES:
        return None if state_path is None else _find_imported(name, state_path)
    prefix = os.path.realpath(sys.base_prefix)
    python = os.path.realpath(sys.executable)
    if name == BASE:
        return Template(name, prefix, python, None, ())
    missing = tuple(library for library in LIBRARIES if importlib.util.find_spec(library) is None)
    return Template(name, prefix, python, _library_folder(), missing)


def _find_imported(name: str, state_path: str) -> Template | None:
    found = imported.find(state_path, name)
    if found is None:
        return None
    root, told = found
    env = tuple((key, value) for key, value in told.env.items() if _ENV_NAME.fullmatch(key) and key not in _OUR_ENV)
    search_path = told.env.get("PATH", "")
    return Template(name, "", "", None, (), root, (*env, ("PATH", search_path or _SYSTEM_PATH)), told.workdir)


def _library_folder() -> str | None:
    """The folder that holds the numpy of this environment."""
    for library in LIBRARIES:
        found = importlib.util.find_spec(library)
        if found is not None and found.origin is not None:
            return os.path.dirname(os.path.dirname(os.path.realpath(found.origin)))
    return None


# Folders that this process makes sandboxes of, and that one which waits may stand on.
_HELD: dict[str, int] = {}


def hold(path: str) -> bool:
    """Hold a template's folder, so that no prune removes it from now on; False where it is not there.

    Raises:
        OSError: it cannot be opened.
    """
    import fcntl

    fd = _HELD.get(path, -1)
    if fd < 0:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        # Whoever removes it holds it for a moment and renames it first; then it is another one that has its name.
        fcntl.flock(fd, fcntl.LOCK_SH)
        _HELD[path] = fd
    try:
        if os.path.samestat(os.fstat(fd), os.lstat(path)):
            return True
    except FileNotFoundError:
        pass
    os.close(_HELD.pop(path))
    return False


def let_go() -> None:
    """Nobody in this process makes sandboxes any more: a prune may remove what it held."""
    while _HELD:
        os.close(_HELD.popitem()[1])


def plan_root(template: Template, state_path: str, *, host_root: bool) -> RootPlan:
    """Write the template's skeleton below the state folder if it is not there; returns how to mount it.

    Raises:
        OSError: the skeleton cannot be written.
    """
    if template.root:
        return _plan_imported(template)
    binds = tuple(_binds(template))
    entries = list(_entries(template, binds))
    digest = hashlib.sha256(repr((host_root, entries)).encode()).hexdigest()[:16]
    skeleton = f"{state_path}/{SKELETON_PREFIX}{template.name}-{digest}"
    if not os.path.isdir(skeleton):
        _write_skeleton(skeleton, entries, host_root=host_root)
    import_paths = () if template.library_folder is None else (template.library_folder,)
    return RootPlan(skeleton, binds, f"{_VENV}/bin:/home/user/.local/bin:{_SYSTEM_PATH}", import_paths)


def _plan_imported(template: Template) -> RootPlan:
    """An imported root as it is, with the library of this host's Python at a place of its own."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = os.path.dirname(os.path.realpath(os.__file__))
    # Packages for the same Python in the template: what somebody installed there can be imported.
    theirs = [f"/usr/local/lib/{version}/site-packages", f"/usr/lib/{version}/site-packages"]
    theirs += ["/usr/lib/python3/dist-packages"] if os.path.isdir(f"{template.root}/usr/lib/{version}") else []
    shown = [path for path in theirs if os.path.isdir(template.root + path)]
    return RootPlan(
        template.root,
        (Bind(library, imported.PYTHON_FOLDER),),
        dict(template.env)["PATH"],
        (imported.PYTHON_FOLDER, f"{imported.PYTHON_FOLDER}/lib-dynload", *shown),
        template.workdir,
    )


def _binds(template: Template) -> Iterator[Bind]:
    """Host folders that are shown read-only, at the same path: a forked interpreter has them in its modules."""
    shown = ["/usr"]
    shown += [path for path in _SYSTEM_FOLDERS if os.path.isdir(path) and not os.path.islink(path)]
    for path in (template.python_prefix, template.library_folder):
        if path is not None and not any(_is_below(path, other) for other in shown):
            shown.append(path)
    shown += [path for path in _CERTIFICATES if os.path.isdir(path)]
    return (Bind(path, path) for path in shown)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    mode: int = 0o644
    owned: bool = False
    text: bytes | None = None
    link: str | None = None


def _entries(template: Template, binds: tuple[Bind, ...]) -> Iterator[_Entry]:
    """Everything in the skeleton, parents first."""
    for path, (mode, owned) in _FOLDERS.items():
        yield _Entry(path, mode, owned)
    for path in _SYSTEM_FOLDERS:
        if os.path.islink(path):
            yield _Entry(path[1:], link=os.readlink(path))
    for path, text in _FILES.items():
        yield _Entry(path, text=text.encode())
    for path in _COPIED:
        with suppress(OSError):
            yield _Entry(path, text=_read(f"/{path}"))
    for folder in _COPIED_FOLDERS:
        yield from _copied_folder(folder)
    zone = _time_zone()
    if zone is not None:
        yield _Entry("etc/localtime", link=zone)
    yield _Entry("etc/mtab", link="/proc/self/mounts")
    yield _Entry("etc/os-release", link="../usr/lib/os-release")
    yield from _python_home(template)
    for bind in binds:
        yield _Entry(bind.target[1:], 0o755)


def _copied_folder(folder: str) -> Iterator[_Entry]:
    with suppress(OSError):
        for item in sorted(os.scandir(f"/{folder}"), key=lambda entry: entry.name):
            path = f"{folder}/{item.name}"
            if item.is_symlink():
                yield _Entry(path, link=os.readlink(item.path))
            elif item.is_file():
                yield _Entry(path, text=_read(item.path))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _time_zone() -> str | None:
    with suppress(OSError):
        target = os.path.realpath("/etc/localtime", strict=True)
        if _is_below(target, "/usr"):
            return target
    return None


def _python_home(template: Template) -> Iterator[_Entry]:
    """A virtual environment around the host's Python, so that `python3` in a command is the Python of run_code."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    config = f"home = {os.path.dirname(template.python)}\ninclude-system-site-packages = false\nversion = {version}\n"
    yield _Entry(f"{_VENV[1:]}/pyvenv.cfg", text=config.encode())
    for name in ("python", "python3", f"python{version}"):
        yield _Entry(f"{_VENV[1:]}/bin/{name}", link=template.python)
    libraries = f"{_VENV[1:]}/lib/python{version}/site-packages"
    if template.library_folder is None:
        yield _Entry(libraries, 0o755)
    else:
        yield _Entry(libraries, link=template.library_folder)


def _write_skeleton(path: str, entries: list[_Entry], *, host_root: bool) -> None:
    """Write the tree beside its place and rename it there: nobody ever sees half of one."""
    parent = os.path.dirname(path)
    building = tempfile.mkdtemp(prefix=BUILDING_PREFIX, dir=parent)
    try:
        os.chmod(building, 0o755)
        for entry in entries:
            _write_entry(f"{building}/{entry.path}", entry, host_root=host_root)
        try:
            os.rename(building, path)
        except OSError:
            # Another process of ours was faster: the same content by name.
            if not os.path.isdir(path):
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write_entry(path: str, entry: _Entry, *, host_root: bool) -> None:
    _make_parents(os.path.dirname(path))
    if entry.link is not None:
        if not os.path.lexists(path):
            os.symlink(entry.link, path)
        return
    if entry.text is not None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(entry.text)
    elif not os.path.isdir(path):
        os.mkdir(path)
    os.chmod(path, entry.mode)
    if entry.owned and host_root:
        os.chown(path, _USER_ID, _USER_ID)


def _make_parents(path: str) -> None:
    if os.path.isdir(path):
        return
    _make_parents(os.path.dirname(path))
    os.mkdir(path)
    # Not by umask: whoever runs inside must be able to walk through.
    os.chmod(path, 0o755)
