"""Who may see which field, and the only way from a record to a result. Generated; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from cloche_contract.kernel.lazy import module_attribute

if TYPE_CHECKING:
    from cloche_contract._gen.models.lifecycle.sandbox import SandboxMetadata, SandboxRecord

Audience: TypeAlias = Literal["model", "operator", "internal", "secret"]

DISCLOSURE: Final[Mapping[str, Mapping[str, Audience]]] = {
    "AgentEndpoint": {
        "base_url": "internal",
        "socket_path": "internal",
        "access_token": "secret",
        "version": "internal",
        "headers": "internal",
        "renew_on_request": "internal",
    },
    "CodeError": {
        "name": "model",
        "value": "model",
        "traceback": "model",
    },
    "ConnectRequest": {
        "sandbox_id": "model",
    },
    "CreateRequest": {
        "template": "model",
        "timeout": "model",
        "envs": "secret",
        "region": "model",
        "cpu": "model",
        "memory": "model",
        "egress": "operator",
        "listen": "operator",
        "metadata": "internal",
        "idempotency_key": "internal",
        "owner": "internal",
    },
    "Denial": {
        "target": "internal",
        "rule": "internal",
    },
    "DiffEntry": {
        "path": "operator",
        "path_base64": "operator",
        "change": "operator",
        "changed": "operator",
        "kind": "operator",
        "mode": "operator",
        "size": "operator",
        "uid": "operator",
        "gid": "operator",
        "links": "operator",
        "target": "operator",
        "target_base64": "operator",
        "before": "operator",
    },
    "DiffRequest": {
        "sandbox_id": "model",
        "limit": "operator",
        "after": "operator",
    },
    "DiffResult": {
        "sandbox_id": "model",
        "entries": "operator",
        "next": "operator",
        "added": "operator",
        "modified": "operator",
        "deleted": "operator",
        "added_bytes": "operator",
        "incomplete": "operator",
        "not_included": "operator",
    },
    "EntryState": {
        "kind": "operator",
        "mode": "operator",
        "size": "operator",
        "uid": "operator",
        "gid": "operator",
    },
    "FileEntry": {
        "name": "model",
        "path": "model",
        "type": "model",
        "size": "model",
    },
    "GetRequest": {
        "sandbox_id": "model",
    },
    "InspectRequest": {
        "sandbox_id": "model",
    },
    "InspectResult": {
        "sandbox_id": "model",
        "mounts": "operator",
        "limits": "operator",
        "users": "operator",
        "namespaces": "operator",
        "network": "operator",
        "facts": "operator",
    },
    "KillRequest": {
        "sandbox_id": "model",
    },
    "LimitInfo": {
        "resource": "operator",
        "enforced": "operator",
        "enforced_by": "operator",
        "value": "operator",
    },
    "ListRequest": {
        "status": "model",
        "limit": "model",
        "offset": "model",
        "region": "model",
    },
    "ListResult": {
        "sandboxes": "internal",
    },
    "MountInfo": {
        "target": "operator",
        "kind": "operator",
        "source": "operator",
        "read_only": "operator",
    },
    "NetworkRules": {
        "rules": "operator",
    },
    "OutputFile": {
        "name": "model",
        "path": "model",
        "size": "model",
    },
    "ProbeCheck": {
        "id": "operator",
        "ok": "operator",
        "required": "operator",
        "cause": "operator",
        "fix": "operator",
        "detail": "operator",
    },
    "ProbeReport": {
        "provider": "operator",
        "usable": "operator",
        "checks": "operator",
        "capabilities": "operator",
        "limits": "operator",
    },
    "ResultItem": {
        "type": "model",
        "size": "model",
        "text": "model",
        "attached": "model",
    },
    "SandboxMetadata": {
        "sandbox_id": "model",
        "template": "model",
        "status": "model",
        "region": "model",
        "started_at": "model",
        "end_at": "model",
        "cpu_count": "model",
        "memory_mb": "model",
        "disk_size_mb": "model",
    },
    "SandboxRecord": {
        "sandbox_id": "model",
        "template": "model",
        "status": "model",
        "region": "model",
        "started_at": "model",
        "end_at": "model",
        "cpu_count": "model",
        "memory_mb": "model",
        "disk_size_mb": "model",
        "url": "operator",
        "agent": "internal",
        "account_id": "internal",
        "user_metadata": "internal",
        "lifecycle": "internal",
        "envs": "secret",
    },
    "SetTimeoutRequest": {
        "sandbox_id": "model",
        "timeout": "model",
    },
    "UpdateNetworkRequest": {
        "sandbox_id": "model",
        "allow": "operator",
        "remove": "operator",
    },
    "sandbox.CreateSandboxOutput": {
        "sandbox_id": "model",
        "status": "model",
        "url": "operator",
    },
    "sandbox.GetSandboxOutput": {
        "sandbox_id": "model",
        "template": "model",
        "status": "model",
        "region": "model",
        "started_at": "model",
        "end_at": "model",
        "cpu_count": "model",
        "memory_mb": "model",
        "disk_size_mb": "model",
    },
    "sandbox.KillSandboxOutput": {
        "success": "model",
        "sandbox_id": "model",
    },
    "sandbox.ListFilesOutput": {
        "files": "model",
        "total": "model",
        "truncated": "model",
        "sandbox_id": "model",
    },
    "sandbox.ListSandboxesOutput": {
        "sandboxes": "model",
        "limit": "model",
        "offset": "model",
    },
    "sandbox.ReadFileOutput": {
        "content": "model",
        "encoding": "model",
        "size": "model",
        "sandbox_id": "model",
    },
    "sandbox.RunCodeOutput": {
        "stdout": "model",
        "stderr": "model",
        "exit_code": "model",
        "output_files": "model",
        "stop_reason": "model",
        "timed_out": "model",
        "truncated": "model",
        "stdout_bytes": "model",
        "stderr_bytes": "model",
        "replaced": "model",
        "results": "model",
        "error": "model",
        "state_kept": "model",
        "sandbox_id": "model",
        "note": "model",
    },
    "sandbox.RunCommandOutput": {
        "stdout": "model",
        "stderr": "model",
        "exit_code": "model",
        "stop_reason": "model",
        "timed_out": "model",
        "truncated": "model",
        "stdout_bytes": "model",
        "stderr_bytes": "model",
        "replaced": "model",
        "sandbox_id": "model",
        "note": "model",
    },
    "sandbox.SetSandboxTimeoutOutput": {
        "success": "model",
        "sandbox_id": "model",
        "timeout": "model",
    },
    "sandbox.WriteFileOutput": {
        "success": "model",
        "bytes_written": "model",
        "sandbox_id": "model",
    },
}


def disclose(record: SandboxRecord) -> SandboxMetadata:
    """Return what a model may see of the record: the fields below, and nothing else."""
    target: type[SandboxMetadata] = module_attribute("cloche_contract._gen.models.lifecycle.sandbox", "SandboxMetadata")
    return target(
        sandbox_id=record.sandbox_id,
        template=record.template,
        status=record.status,
        region=record.region,
        started_at=record.started_at,
        end_at=record.end_at,
        cpu_count=record.cpu_count,
        memory_mb=record.memory_mb,
        disk_size_mb=record.disk_size_mb,
    )
