"""The image recipe of `abx mcp deploy --target docker`: built by a real engine, run as its compose file says, called.

Nothing is pulled: under the name that the recipe starts from stands an image of this machine's own Python, whose pip
installs from the wheels of this tree.

Source: issue 6, `--target docker`; checklist 203, 210.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import yaml

from tests import docker_engine
from tests.architecture.artefact import call, secrets_of
from tests.architecture.wheelhouse import run
from tests.docker_engine import TestEngine

_WITHIN_S = 120
_PYTHON = "/usr/bin/python3"
_WHEELS = "opt/wheels"
# What the steps of the recipe use of an image of Debian, besides Python.
_PROGRAMS = ("/usr/sbin/useradd", "/usr/bin/cp", "/usr/bin/mkdir", "/usr/bin/chown")
# Libraries that every Linux has, which wheels do not bring: see PEP 599 and its successors.
_TAKEN_FOR_GIVEN = ("libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2", "libutil.so.1")
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shadow": "root:*:19000::::::\n",
    "etc/gshadow": "root:*::\n",
    "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUSERGROUPS_ENAB yes\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\n",
    "usr/local/bin/pip": f'#!/bin/sh\nexec {_PYTHON} -m pip "$@"\n',
}


def missing() -> str:
    """What this machine lacks for it; empty where nothing."""
    if reason := docker_engine.missing():
        return reason
    for program in (_PYTHON, *_PROGRAMS):
        if not Path(program).exists():
            return f"no {program}"
    version = subprocess.run([_PYTHON, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    here = ".".join(map(str, sys.version_info[:2]))
    return "" if version.startswith(f"{here}.") else "the wheels are for another Python than Debian's"


def check_image(abx: Path, wheelhouse: Path) -> None:
    """Write the recipe, build it, and see that a container of it serves who has its token, and nobody without.

    Args:
        abx: the command of an environment that has base `cloche` alone.
        wheelhouse: wheels for this interpreter.
    """
    folder = wheelhouse / "image"
    words = ["mcp", "deploy", "--target", "docker", "--output-dir", str(folder)]
    run([str(abx), *words], wheelhouse, {"HOME": str(wheelhouse)})
    secrets = secrets_of(folder)
    with docker_engine.running_engine() as engine:
        _import_base(engine, _base_of(folder), wheelhouse)
        image = _build(engine, folder)
        told = str(engine.api.inspect_image(image)) + str(engine.api.history(image))
        assert not [name for name, value in secrets.items() if value in told], "the image holds a secret"
        service = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["mcp"]
        with _container(engine, image, service, {}) as refused:
            assert engine.api.wait(refused, timeout=_WITHIN_S)["StatusCode"] != 0
            logged = engine.api.logs(refused).decode(errors="replace")
            assert "ABX_MCP_AUTH_TOKEN" in logged, logged[-2000:]
        with _container(engine, image, service, secrets) as container:
            anyio.run(call, f"{_address(engine, container)}/mcp", secrets["ABX_MCP_AUTH_TOKEN"])
            assert _user_of(engine, container) == "10001"
            engine.api.stop(container, timeout=20)
            # uvicorn ends by the signal, in order; 137 would be the end of docker's patience.
            assert engine.api.wait(container, timeout=_WITHIN_S)["StatusCode"] in (0, 143)


def _base_of(folder: Path) -> str:
    (base,) = re.findall(r"^FROM (\S+)$", (folder / "Dockerfile").read_text(), re.MULTILINE)
    return base


def _import_base(engine: TestEngine, reference: str, wheelhouse: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        wanted = [*_PROGRAMS, *(str(path) for name in _TAKEN_FOR_GIVEN for path in Path("/usr/lib").glob(f"*/{name}"))]
        for path in dict.fromkeys(docker_engine.files_of_python(wanted, extensions=True)):
            if not path.endswith("/EXTERNALLY-MANAGED"):  # the image that it stands for is not Debian's own
                archive.add(path, path.lstrip("/"), recursive=False)
        for name, wheel in {wheel.name: wheel for wheel in wheelhouse.glob("**/*.whl")}.items():
            archive.add(wheel, f"{_WHEELS}/{name}")
        pip = Path(sysconfig.get_paths()["purelib"], "pip")
        archive.add(pip, "usr/lib/python3/dist-packages/pip", filter=_no_bytecode)
        for name, text in _ACCOUNTS.items():
            file = tarfile.TarInfo(name)
            file.mode, file.size = 0o755, len(text)
            archive.addfile(file, io.BytesIO(text.encode()))
        for name, mode in (("tmp", 0o1777), ("home", 0o755), ("root", 0o700), ("srv", 0o755)):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, mode
            archive.addfile(made)
    settings = [f"ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/{_WHEELS} PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    docker_engine.import_image(engine, buffer.getvalue(), reference, settings)


def _no_bytecode(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in found.name else found


def _build(engine: TestEngine, folder: Path) -> str:
    """Build as `docker build` does it, without a network: what is installed is in the base already."""
    told: list[str] = []
    steps = engine.api.build(path=str(folder), tag="cloche-test/deployed", rm=True, decode=True, network_mode="none")
    for step in steps:
        told.append(str(step.get("stream", "")))
        if "error" in step:
            raise RuntimeError(f"the image cannot be built: {step['error']}\n{''.join(told)[-3000:]}")
    return "cloche-test/deployed"


@contextmanager
def _container(
    engine: TestEngine, image: str, service: Mapping[str, Any], secrets: Mapping[str, str]
) -> Generator[str]:
    """A container with what the compose file of the recipe asks for."""
    api = engine.api
    network = api.create_network("cloche-test-deployed", driver="bridge")["Id"]
    try:
        host_config = api.create_host_config(
            network_mode=network,
            read_only=service["read_only"],
            tmpfs=service["tmpfs"],
            cap_drop=service["cap_drop"],
            security_opt=service["security_opt"],
            mem_limit=service["mem_limit"],
            init=service["init"],
        )
        environment = {**service["environment"], **secrets}
        container = api.create_container(image, environment=environment, host_config=host_config)["Id"]
        try:
            api.start(container)
            yield str(container)
        finally:
            api.remove_container(container, force=True, v=True)
    finally:
        api.remove_network(network)


def _address(engine: TestEngine, container: str) -> str:
    """Where the server listens, once it says that it does."""
    said = b""
    for piece in engine.api.logs(container, stream=True, follow=True):
        said += piece
        if found := re.search(rb"running on http://0\.0\.0\.0:(\d+)", said):
            networks = cast("dict[str, Any]", engine.api.inspect_container(container)["NetworkSettings"]["Networks"])
            (network,) = networks.values()
            return f"http://{network['IPAddress']}:{int(found[1])}"
    raise RuntimeError(f"the container does not serve:\n{said.decode(errors='replace')[-3000:]}")


def _user_of(engine: TestEngine, container: str) -> str:
    """Who the server's process is."""
    asked = engine.api.exec_create(container, [_PYTHON, "-c", "import os; print(os.getuid())"])["Id"]
    return engine.api.exec_start(asked).decode().strip()
