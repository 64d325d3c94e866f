"""A Docker Engine of our own for tests: private data, socket and process, no firewall rules, and images made here.

Nothing is pulled. `busybox` has one static program and nothing else; `python` is made of this machine's own files.
"""

from __future__ import annotations

import io
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 60
# Wide: Docker's own has room for 31 networks, and those of the machine and of killed test runs count.
ADDRESS_POOL = "10.213.0.0/16"
BUSYBOX = "cloche-test/busybox:latest"
PYTHON = "cloche-test/python:latest"
_NETWORK_ID = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class TestEngine:
    """A running engine: its address, and docker-py's client to look into it from the side."""

    __test__ = False

    url: str
    api: Any


def missing() -> str:
    """What this machine lacks for an engine of our own; empty where nothing."""
    if os.geteuid() != 0:
        return "only root may start a Docker Engine here"
    if shutil.which("dockerd") is None:
        return "dockerd is not installed (Debian: docker.io)"
    return "" if busybox() is not None else "no static busybox (Debian: busybox-static)"


def busybox() -> Path | None:
    """A busybox that needs no library."""
    return next((Path(name) for name in ("/bin/busybox", "/usr/bin/busybox") if Path(name).exists()), None)


@contextmanager
def running_engine(address_pool: str = ADDRESS_POOL) -> Generator[TestEngine]:
    """Start an engine, and end it with all that it made, whatever happens meanwhile."""
    _sweep()
    # AF_UNIX paths are short: not below pytest's own temporary directory.
    folder = Path(tempfile.mkdtemp(prefix="cloche-dockerd-"))
    # An empty configuration: not the one of an engine that this machine may have.
    (folder / "config").write_text("{}")
    log = (folder / "log").open("wb")
    command = [
        *("dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--host", f"unix://{folder}/sock", "--pidfile", str(folder / "pid"), "--config-file", str(folder / "config")),
        # Networks are those that are asked for; publishing goes through docker-proxy; the host stays as it is.
        *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
        *("--default-address-pool", f"base={address_pool},size=28"),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        api = _client(f"unix://{folder}/sock", process, folder / "log")
        try:
            yield TestEngine(f"unix://{folder}/sock", api)
        finally:
            _empty(api)
            api.close()
    finally:
        _end(process)
        log.close()
        _remove(folder)


def _client(url: str, process: subprocess.Popen[bytes], log: Path) -> Any:
    import docker

    pidfd = os.pidfd_open(process.pid)
    try:
        for _ in range(START_S * 10):
            if _answers(url):
                return docker.APIClient(base_url=url, version="auto", timeout=120)
            # Notices at once where the engine gives up.
            if select.select([pidfd], [], [], 0.1)[0]:
                break
    finally:
        os.close(pidfd)
    raise RuntimeError(f"dockerd did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _answers(url: str) -> bool:
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(START_S)
        try:
            knocking.connect(url.removeprefix("unix://"))
            knocking.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in knocking.recv(64)
        except OSError:
            return False


def _empty(api: Any) -> None:
    """An engine that is told to end waits for its containers; a bridge outlives it."""
    for container in api.containers(all=True):
        api.remove_container(container["Id"], force=True, v=True)
    for network in api.networks():
        if network["Name"] not in ("bridge", "host", "none"):
            api.remove_network(network["Id"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _sweep() -> None:
    """Remove what the engines of killed test runs left: a folder with mounts, and bridges in this network namespace."""
    for folder in Path(tempfile.gettempdir()).glob("cloche-dockerd-*"):
        # One that has no socket just starts, or ends.
        if not (folder / "sock").exists() or _answers(f"unix://{folder}/sock"):
            continue
        networks = folder / "data/network/files/local-kv.db"
        for found in set(_NETWORK_ID.findall(networks.read_bytes() if networks.exists() else b"")):
            bridge = f"br-{found[:12].decode()}"
            if Path("/sys/class/net", bridge).exists() and shutil.which("ip"):
                subprocess.run(["ip", "link", "delete", bridge], check=False)
        _remove(folder)


def _remove(folder: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted((one for one in mounts if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)


# -- images -----------------------------------------------------------------------------------------------------------


def import_busybox(engine: TestEngine) -> str:
    """An image with busybox and the names of its programs: no library, no Python, no /etc."""
    program = busybox()
    assert program is not None
    names = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(program, "bin/busybox")
        for name in names:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                archive.addfile(link)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
    return import_image(engine, buffer.getvalue(), BUSYBOX)


def import_python(
    engine: TestEngine,
    changes: Sequence[str] = (),
    more: Sequence[str] = (),
    entries: Sequence[tuple[tarfile.TarInfo, bytes]] = (),
) -> str:
    """An image with the Python, shell and C library of this machine.

    Args:
        changes: lines of a Dockerfile.
        more: programs besides.
        entries: what is in it besides, with the content of each file.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in files_of_python(more):
            archive.add(path, path.lstrip("/"), recursive=False)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return import_image(engine, buffer.getvalue(), PYTHON, changes)


def files_of_python(more: Sequence[str] = (), *, extensions: bool = False) -> Iterator[str]:
    """The files of this machine's Python and of some programs, with the libraries that they need.

    Args:
        more: programs besides.
        extensions: also what Python's own extension modules need, such as OpenSSL.
    """
    python = str(Path("/usr/bin/python3").resolve())
    ask = [python, "-c", "import sys; print(sys.version_info[1])"]
    version = subprocess.run(ask, capture_output=True, text=True, check=True)
    yield from ("/bin", "/lib", "/lib64")
    programs = [python, *(f"/usr/bin/{name}" for name in ("sh", "dash", "cat", "ls", "env", "sleep", "id")), *more]
    library = Path(f"/usr/lib/python3.{version.stdout.strip()}")
    linked = [*programs, *(str(path) for path in library.glob("lib-dynload/*.so") if extensions)]
    yield from {"/usr/bin/python3", *programs, *(lib for program in linked for lib in _libraries(program))}
    for path in sorted(library.rglob("*")):
        if not {"test", "__pycache__", "idlelib", "config"} & set(path.parts):
            yield str(path)


def _libraries(program: str) -> list[str]:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    words = [Path(word) for line in listed.splitlines() for word in line.split() if word.startswith("/")]
    # /lib is a link: a file below it would be unpacked through a folder of that name.
    return [str(path) for word in words for path in (word.parent.resolve() / word.name, word.resolve())]


def import_image(engine: TestEngine, data: bytes, reference: str, changes: Sequence[str] = ()) -> str:
    """An image of one layer; `changes` are lines of a Dockerfile."""
    name, _, tag = reference.rpartition(":")
    engine.api.import_image_from_data(data, repository=name, tag=tag, changes=list(changes))
    return reference
