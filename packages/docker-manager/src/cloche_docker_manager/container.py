"""The container of one sandbox: exactly what it is made with, in one place to read and to review.

Source: docker.md of the design ("the exact set of the created container"); systems 5.5; faults E3, E21, P10, P11.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import seccomp
from .delivery import LOADER
from .registry import Record
from .settings import MIB, ManagerSettings

AGENT_PORT, INTERPRETER_PORT = 49983, 49999
LOOPBACK = "127.0.0.1"
WORKSPACE = "/workspace"
BASE = "/cloche/base"
STORE = "/cloche/store"
_PYTHON = "/cloche/python"
_AGENT = "/cloche/agent"
_BOOT = "/.cloche-boot"
_LOG = {"type": "json-file", "config": {"max-size": "1m", "max-file": "1"}}
_OPEN_FILES = 4096
_KILLED_FIRST = 500


@dataclass(frozen=True)
class Delivered:
    """Folders of this machine that are bound into a container, read-only."""

    python: Path
    agent: Path
    base: Path


def settings_of(record: Record, labels: Mapping[str, str]) -> dict[str, Any]:
    """Image, program and labels. The token is nowhere in them: whoever may use the engine can read them all."""
    program = [f"{_PYTHON}/{LOADER}", "--library-path", f"{_PYTHON}/lib", f"{_PYTHON}/bin/python3", "-I", "-S"]
    return {
        "image": record.image,
        "entrypoint": program,
        "command": [f"{_AGENT}/cloche_agentd/__main__.py", "--container", _BOOT],
        "user": "0:0",
        "hostname": record.id,
        "working_dir": "/",
        "labels": dict(labels),
        "ports": [AGENT_PORT, INTERPRETER_PORT],
        "healthcheck": {"test": ["NONE"]},
        "stop_signal": "SIGTERM",
    }


def host_of(record: Record, network: str, delivered: Delivered, settings: ManagerSettings) -> dict[str, Any]:
    """Rights, limits, mounts and ports."""
    profile = settings.profile
    return {
        "privileged": False,
        # Mounting the layers of sessions takes SYS_ADMIN, and DAC_OVERRIDE because an overlay keeps a work folder that
        # its mode closes to everybody. The agent alone has them: user code has no capability.
        "cap_drop": ["ALL"],
        "cap_add": ["DAC_OVERRIDE", "SYS_ADMIN"],
        "security_opt": _security(settings.apparmor),
        "pids_limit": profile.processes,
        "mem_limit": profile.memory_mb * MIB,
        "memswap_limit": profile.memory_mb * MIB,
        "nano_cpus": profile.cores * 1_000_000_000,
        "oom_score_adj": _KILLED_FIRST,
        "ulimits": [_limit("core", 0), _limit("nofile", _OPEN_FILES)],
        "restart_policy": {"Name": "no"},
        "log_config": dict(_LOG),
        "network_mode": network,
        "ipc_mode": "private",
        # The engine chooses the ports: nobody can take one between our choice and its use.
        "port_bindings": dict.fromkeys((AGENT_PORT, INTERPRETER_PORT), (LOOPBACK, None)),
        "mounts": [
            _bind(record.workspace_root, WORKSPACE),
            _bind(str(delivered.base), BASE),
            _bind(str(delivered.python), _PYTHON),
            _bind(str(delivered.agent), _AGENT),
            {"Type": "volume", "Source": record.volume, "Target": STORE, "ReadOnly": False},
        ],
    }


def _security(apparmor: str | None) -> list[str]:
    options = ["no-new-privileges:true", f"seccomp={seccomp.profile()}"]
    return [*options, f"apparmor={apparmor}"] if apparmor else options


def _limit(name: str, value: int) -> dict[str, object]:
    return {"Name": name, "Soft": value, "Hard": value}


def _bind(source: str, target: str) -> dict[str, object]:
    # A structure, not a text with colons; and a source that is missing is an error, not a new folder on the host.
    # Private: what is mounted here later stays outside.
    return {
        "Type": "bind",
        "Source": source,
        "Target": target,
        "ReadOnly": True,
        "BindOptions": {"Propagation": "rprivate", "NonRecursive": False},
    }


def boot_archive(record: Record, root_hash: str, image: Mapping[str, Any], asked: Mapping[str, str]) -> bytes:
    """What the agent reads once and removes: its settings, and the token in a file of its own.

    Args:
        asked: variables of the sandbox, on top of those of the image.
    """
    path, envs = _environment(image, asked)
    boot = {
        "sandbox_id": record.id,
        "workdir": WORKSPACE,
        "store": STORE,
        "base": BASE,
        "base_root_hash": root_hash,
        "envs": envs,
        **({"path": path} if path else {}),
        **({"deadline": record.end_at} if record.end_at else {}),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo(_BOOT.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        for name, data in (("settings.json", json.dumps(boot).encode()), ("token", record.token.encode())):
            member = tarfile.TarInfo(f"{_BOOT.lstrip('/')}/{name}")
            member.size, member.mode = len(data), 0o400
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _environment(image: Mapping[str, Any], asked: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """PATH and the other variables that the image sets; nothing of this process is among them."""
    config = cast("Mapping[str, Any]", image.get("Config") or {})
    lines = cast("list[str]", config.get("Env") or [])
    pairs = dict(line.split("=", 1) for line in lines if "=" in line) | dict(asked)
    return pairs.pop("PATH", ""), pairs


def published_ports(facts: Mapping[str, Any]) -> tuple[int, int] | None:
    """The ports of this machine that lead to agent and interpreter, once the engine has chosen them."""
    ports = cast("Mapping[str, list[dict[str, str]] | None]", facts["NetworkSettings"]["Ports"] or {})
    found: list[int] = []
    for port in (AGENT_PORT, INTERPRETER_PORT):
        bound = [one for one in ports.get(f"{port}/tcp") or [] if one["HostIp"] == LOOPBACK]
        if not bound:
            return None
        found.append(int(bound[0]["HostPort"]))
    return found[0], found[1]
