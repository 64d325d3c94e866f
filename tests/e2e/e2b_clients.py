"""The published SDKs of E2B, unmodified, pointed at one sandbox of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import e2b_code_interpreter as e2b
from e2b import ConnectionConfig
from e2b.sandbox.main import SandboxOpts
from packaging.version import Version

from cloche_sdk import Doors, Endpoint, Sandbox, load_settings
from tests.e2e.servers import settings_for


@contextmanager
def listening_sandbox(template: str = "code-interpreter-v1") -> Generator[Sandbox]:
    """A local sandbox with a port, in a state folder of its own.

    Skips the test where this machine cannot make one.
    """
    with TemporaryDirectory(prefix="cl-") as name:
        folder = Path(name)
        environ = {"HOME": name, **settings_for("local", folder)}
        doors = Doors(settings=load_settings(environ, home=folder, workdir=folder), environ=environ)
        with Sandbox.create(template, listen=True, timeout=600, doors=doors) as sandbox:
            yield sandbox


def options(place: Endpoint, *, token: str | None = None) -> SandboxOpts:
    """The arguments of either SDK class for a sandbox at `place`; `token` instead of the right one."""
    access_token = place.access_token if token is None else token
    headers = place.headers if token is None else {"X-Access-Token": token}
    return SandboxOpts(
        sandbox_id=place.sandbox_id,
        sandbox_domain=None,
        envd_version=Version(place.envd_version),
        envd_access_token=access_token,
        traffic_access_token=access_token,
        connection_config=ConnectionConfig(sandbox_url=place.url, extra_sandbox_headers=headers),
    )


def client(place: Endpoint, *, token: str | None = None) -> e2b.Sandbox:
    """The synchronous client."""
    return e2b.Sandbox(**options(place, token=token))


def async_client(place: Endpoint, *, token: str | None = None) -> e2b.AsyncSandbox:
    """The asynchronous client."""
    return e2b.AsyncSandbox(**options(place, token=token))
