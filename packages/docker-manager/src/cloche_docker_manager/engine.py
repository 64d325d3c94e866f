"""The Docker Engine, and the one module that imports docker-py. Every method blocks: call it in a worker thread.

The engine is found as Docker's own client finds it: DOCKER_HOST, else DOCKER_CONTEXT or the chosen context, else the
socket of this machine, else the rootless one. What fails is a catalogue error, with cause and fix.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cloche_contract.errors import BackendCause, BackendUnavailable, ClocheError, ImageNotFound, ProviderFailed

TIMEOUT_S = 60
_OLDEST_API = (1, 41)
_DEFAULT_SOCKET = "unix:///var/run/docker.sock"
# "could not find an available, non-overlapping IPv4 address pool", "all predefined address pools have been …".
_NO_ADDRESSES = re.compile(r"address pool", re.IGNORECASE)
_NETWORK_WORDS = re.compile(r"iptables|bridge|network controller|endpoint", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Where an engine is, and who said so."""

    url: str
    said_by: str
    tls: Any = None

    @property
    def here(self) -> bool:
        """Whether the engine sees the files of this machine."""
        return self.url.startswith(("unix://", "http+unix://", "npipe://"))


@dataclass(frozen=True)
class Facts:
    """What the engine says of itself."""

    version: str
    api: str
    operating_system: str
    architecture: str
    storage: str
    security: tuple[str, ...]
    rootless: bool
    cgroup_version: str
    limits_cpu: bool = False
    limits_memory: bool = False
    limits_pids: bool = False


@dataclass(frozen=True)
class Owned:
    """A container, volume or network that carries labels of ours."""

    kind: str
    name: str
    labels: Mapping[str, str]
    running: bool = False


def find_engine(environ: Mapping[str, str]) -> Place:
    """Tell which engine is meant.

    Raises:
        BackendUnavailable: the context is unknown, or its TLS files cannot be used.

    Source: fault E22.
    """
    with _told():
        if environ.get("DOCKER_HOST"):
            return Place(environ["DOCKER_HOST"], "DOCKER_HOST", _tls_of(environ))
        return _place_of_context(environ) or _default_place(environ)


def _tls_of(environ: Mapping[str, str]) -> Any:
    from docker.utils import kwargs_from_env

    read = cast("Any", kwargs_from_env)
    return read(environment=dict(environ)).get("tls")


def _place_of_context(environ: Mapping[str, str]) -> Place | None:
    from docker import context as contexts
    from docker.errors import ContextException

    api = cast("Any", contexts).ContextAPI
    try:
        name: str = environ.get("DOCKER_CONTEXT") or cast("Any", contexts.api).get_current_context_name()
        if name in ("", "default"):
            return None
        found = api.get_context(name)
    except (ContextException, OSError, ValueError) as exc:
        raise BackendUnavailable(cause="docker_context_unknown") from exc
    if found is None:
        raise BackendUnavailable(cause="docker_context_unknown")
    return Place(str(found.Host), "Docker context", found.TLSConfig)


def _default_place(environ: Mapping[str, str]) -> Place:
    rootless = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "docker.sock"
    if not Path("/var/run/docker.sock").exists() and rootless.exists():
        return Place(f"unix://{rootless}", "rootless socket")
    return Place(_DEFAULT_SOCKET, "default socket")


class Engine:
    """One engine, over one connection pool."""

    def __init__(self, place: Place, timeout_s: int = TIMEOUT_S) -> None:
        """Connect.

        Raises:
            BackendUnavailable: no engine answers there, or it cannot be used.
        """
        import docker

        self.place = place
        with _told():
            _knock(place)
            self._api: Any = docker.APIClient(
                base_url=place.url, tls=place.tls or False, version="auto", timeout=timeout_s
            )
        if tuple(int(part) for part in str(self._api.api_version).split(".")[:2]) < _OLDEST_API:
            self.close()
            raise BackendUnavailable(cause="docker_too_old")

    def close(self) -> None:
        self._api.close()

    def facts(self) -> Facts:
        with _told():
            info, version = self._api.info(), self._api.version()
        options = tuple(str(option).removeprefix("name=").split(",")[0] for option in info.get("SecurityOptions") or ())
        return Facts(
            version=str(version.get("Version", "")),
            api=str(version.get("ApiVersion", "")),
            operating_system=str(info.get("OSType", "")),
            architecture=str(info.get("Architecture", "")),
            storage=str(info.get("Driver", "")),
            security=options,
            rootless="rootless" in options,
            cgroup_version=str(info.get("CgroupVersion", "1")),
            limits_cpu=bool(info.get("CpuCfsQuota")),
            limits_memory=bool(info.get("MemoryLimit")),
            limits_pids=bool(info.get("PidsLimit")),
        )

    # -- images ---------------------------------------------------------------------------------------------------

    def images(self) -> list[str]:
        """Every local reference, sorted, once each; an image without one by its id.

        Source: checklist 224 to 229.
        """
        with _told():
            found = cast("list[dict[str, Any]]", self._api.images())
        names: set[str] = set()
        for image in found:
            tags = [str(tag) for tag in image.get("RepoTags") or () if "<none>" not in tag]
            names.update(tags or [str(image["Id"])])
        return sorted(names)

    def image(self, reference: str) -> Mapping[str, Any]:
        """What the engine knows of a local image. Nothing is pulled.

        Raises:
            ImageNotFound: the engine has none of that name.
        """
        with _told(missing=ImageNotFound()):
            return cast("Mapping[str, Any]", self._api.inspect_image(reference))

    # -- containers, volumes, networks ----------------------------------------------------------------------------

    def create_container(self, name: str, settings: Mapping[str, Any], host: Mapping[str, Any]) -> str:
        """Make a container; `host` is what docker-py calls the host configuration."""
        with _told():
            made = self._api.create_container(name=name, host_config=self._api.create_host_config(**host), **settings)
        return str(made["Id"])

    def put_file(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive in a folder of a container that does not run yet."""
        with _told():
            self._api.put_archive(container, folder, archive)

    def start(self, container: str) -> None:
        with _told():
            self._api.start(container)

    def stop(self, container: str, grace_s: int) -> None:
        """End a container; nothing happens where there is none."""
        with _told(absent_is_fine=True):
            self._api.stop(container, timeout=grace_s)

    def inspect(self, container: str) -> Mapping[str, Any] | None:
        """What the engine knows of a container, or None."""
        with _told(absent_is_fine=True):
            return cast("Mapping[str, Any]", self._api.inspect_container(container))
        return None

    def last_words(self, container: str) -> str:
        """The end of what the container printed; empty where it is gone."""
        with _told(absent_is_fine=True):
            return bytes(self._api.logs(container, tail=20))[-4096:].decode(errors="replace")
        return ""

    def remove_container(self, container: str) -> None:
        """Kill and remove a container with its anonymous volumes; nothing happens where there is none."""
        with _told(absent_is_fine=True):
            self._api.remove_container(container, force=True, v=True)

    def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        with _told():
            self._api.create_volume(name=name, labels=dict(labels))

    def remove_volume(self, name: str) -> None:
        with _told(absent_is_fine=True):
            self._api.remove_volume(name, force=True)

    def ensure_network(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make a bridge of that name unless there is one."""
        with _told():
            if self._api.networks(names=[f"^{name}$"]):
                return
            self._api.create_network(
                name, driver="bridge", options=dict(options), labels=dict(labels), check_duplicate=True
            )

    def remove_network(self, name: str) -> None:
        with _told(absent_is_fine=True):
            self._api.remove_network(name)

    def owned(self, label: str) -> list[Owned]:
        """Every container, volume and network that carries this label, containers first."""
        with _told():
            containers = self._api.containers(all=True, filters={"label": label})
            volumes = self._api.volumes(filters={"label": label}).get("Volumes") or ()
            networks = self._api.networks(filters={"label": label})
        found = [
            Owned("container", str(one["Names"][0]).lstrip("/"), one.get("Labels") or {}, one.get("State") == "running")
            for one in containers
            if one.get("Names")
        ]
        found += [Owned("volume", str(one["Name"]), one.get("Labels") or {}) for one in volumes]
        return found + [Owned("network", str(one["Name"]), one.get("Labels") or {}) for one in networks]


def _knock(place: Place) -> None:
    """Connect once and hang up: docker-py leaves a socket open when it is refused."""
    if place.url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(TIMEOUT_S)
            knocking.connect(place.url.removeprefix("unix://"))


def labelled(labels: Mapping[str, str]) -> Sequence[str]:
    """Labels as the engine's filters want them."""
    return [f"{key}={value}" for key, value in labels.items()]


@contextmanager
def _told(*, missing: ClocheError | None = None, absent_is_fine: bool = False) -> Generator[None]:
    """Turn what docker-py raises into a catalogue error; its text is for the debug log."""
    from docker import errors

    try:
        yield
    except errors.NotFound as exc:
        if not absent_is_fine:
            raise missing or _refused(exc) from exc
    except errors.APIError as exc:
        raise _refused(exc) from exc
    except (errors.TLSParameterError, ssl.SSLError) as exc:
        raise BackendUnavailable(cause="docker_tls_refused") from exc
    except (errors.DockerException, OSError) as exc:
        # requests' exceptions are OSErrors; what kept it from connecting is somewhere below.
        raise BackendUnavailable(cause=_unreachable(exc)) from exc


def _refused(exc: Any) -> ClocheError:
    status = int(exc.status_code or 500)
    if _NO_ADDRESSES.search(str(exc.explanation or "")):
        return BackendUnavailable(cause="docker_networks_used_up")
    if status >= 500 and _NETWORK_WORDS.search(str(exc.explanation or "")):
        return BackendUnavailable(cause="docker_network_blocked")
    return ProviderFailed(http_status=status)


def _unreachable(exc: BaseException) -> BackendCause:
    text = ""
    while True:
        if isinstance(exc, PermissionError):
            return "docker_access_denied"
        if isinstance(exc, ssl.SSLError):
            return "docker_tls_refused"
        text += str(exc)
        below = exc.__cause__ or exc.__context__
        if below is None:
            break
        exc = below
    return "docker_access_denied" if "Permission denied" in text else "docker_not_running"
