"""A Docker Engine for the contenders that need one: the user's, or one that is started for them and ends with them."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Generator
from contextlib import contextmanager

from tests import docker_engine
from tests.benchmarks.programs import docker_image


@contextmanager
def some_engine() -> Generator[None]:
    """Have `docker` reach an engine with an image of Python, where this machine can have one.

    Programs and libraries find it by the environment, as they find the user's.
    """
    if docker_image() is not None or docker_engine.missing():
        yield
        return
    with docker_engine.running_engine() as engine:
        image = _image_of_python(engine)
        ours = {"DOCKER_HOST": engine.url, "BENCHMARK_IMAGE": image}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _image_of_python(engine: docker_engine.TestEngine) -> str:
    """An image that has what llm-sandbox expects of the public one: a command, root by name, `python`, programs."""
    root = b"root:x:0:0:root:/root:/bin/sh\n"
    accounts, link = tarfile.TarInfo("etc/passwd"), tarfile.TarInfo("usr/bin/python")
    accounts.size, link.type, link.linkname = len(root), tarfile.SYMTYPE, "python3"
    programs = ("/usr/bin/mkdir", "/usr/bin/chown", "/usr/bin/rm")
    return docker_engine.import_python(engine, ['CMD ["python3"]'], programs, [(accounts, root), (link, b"")])
