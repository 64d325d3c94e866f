"""Field tables of every message, and a checker over them. Generated from schemas/agent and schemas/layerstack; do not edit."""

import re
from typing import Any, Final, cast

# Message -> field -> (type, required, lower bound, upper bound, allowed values, message or type of what is inside,
# pattern of a string).
# Bounds are characters of a string, entries of a list or map, and the value of a number.
_Field = tuple[str, bool, "int | None", "int | None", "tuple[str, ...]", str, str]

FIELDS: Final[dict[str, dict[str, _Field]]] = {
    "ChangeEvent": {
        "name": ("string", True, None, 4096, (), "", ""),
        "type": (
            "string",
            True,
            None,
            None,
            (
                "EVENT_TYPE_UNSPECIFIED",
                "EVENT_TYPE_CREATE",
                "EVENT_TYPE_WRITE",
                "EVENT_TYPE_REMOVE",
                "EVENT_TYPE_RENAME",
                "EVENT_TYPE_CHMOD",
            ),
            "",
            "",
        ),
        "entry": ("object", False, None, None, (), "Entry", ""),
    },
    "Entry": {
        "name": ("string", True, None, 255, (), "", ""),
        "type": (
            "string",
            False,
            None,
            None,
            ("FILE_TYPE_UNSPECIFIED", "FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY", "FILE_TYPE_SYMLINK"),
            "",
            "",
        ),
        "path": ("string", True, None, 4096, (), "", ""),
        "size": ("string", False, None, 20, (), "", "^[0-9]+\\Z"),
        "mode": ("integer", False, 0, 9007199254740991, (), "", ""),
        "permissions": ("string", False, None, 16, (), "", ""),
        "owner": ("string", False, None, 256, (), "", ""),
        "group": ("string", False, None, 256, (), "", ""),
        "modifiedTime": ("string", False, None, 64, (), "", ""),
        "symlinkTarget": ("string", False, None, 4096, (), "", ""),
        "isSymlink": ("boolean", False, None, None, (), "", ""),
        "metadata": ("object", False, None, 1000, (), "string", ""),
    },
    "EntryResponse": {
        "entry": ("object", True, None, None, (), "Entry", ""),
    },
    "ListDirRequest": {
        "path": ("string", True, 1, 4096, (), "", ""),
        "depth": ("integer", False, 0, 32, (), "", ""),
        "limit": ("integer", False, 1, 100000, (), "", ""),
    },
    "ListDirResponse": {
        "entries": ("array", False, None, 100000, (), "Entry", ""),
        "total": ("integer", False, 0, 9007199254740991, (), "", ""),
    },
    "MakeDirRequest": {
        "path": ("string", True, 1, 4096, (), "", ""),
    },
    "MoveRequest": {
        "source": ("string", True, 1, 4096, (), "", ""),
        "destination": ("string", True, 1, 4096, (), "", ""),
    },
    "RemoveRequest": {
        "path": ("string", True, 1, 4096, (), "", ""),
    },
    "RemoveResponse": {
        "removed": ("boolean", False, None, None, (), "", ""),
    },
    "StatRequest": {
        "path": ("string", True, 1, 4096, (), "", ""),
    },
    "WatchMessage": {
        "start": ("object", False, None, None, (), "WatchStarted", ""),
        "filesystem": ("object", False, None, None, (), "ChangeEvent", ""),
        "overflow": ("object", False, None, None, (), "WatchOverflow", ""),
        "keepalive": ("object", False, None, None, (), "KeepaliveEvent", ""),
    },
    "WatchOverflow": {},
    "WatchRequest": {
        "path": ("string", True, 1, 4096, (), "", ""),
        "recursive": ("boolean", False, None, None, (), "", ""),
        "includeEntry": ("boolean", False, None, None, (), "", ""),
        "allowNetworkMounts": ("boolean", False, None, None, (), "", ""),
    },
    "WatchStarted": {},
    "WatcherCreated": {
        "watcherId": ("string", True, None, 64, (), "", ""),
    },
    "WatcherEvents": {
        "events": ("array", False, None, 100000, (), "ChangeEvent", ""),
        "overflow": ("boolean", False, None, None, (), "", ""),
    },
    "WatcherRequest": {
        "watcherId": ("string", True, None, 64, (), "", ""),
    },
    "Context": {
        "id": ("string", True, None, 256, (), "", ""),
        "language": ("string", True, None, 64, (), "", ""),
        "cwd": ("string", True, None, 4096, (), "", ""),
    },
    "CreateContextRequest": {
        "language": ("string", False, None, 64, (), "", ""),
        "cwd": ("string", False, None, 4096, (), "", ""),
    },
    "ExecuteLine": {
        "type": (
            "string",
            True,
            None,
            None,
            (
                "number_of_executions",
                "stdout",
                "stderr",
                "result",
                "error",
                "keepalive",
                "context_restarted",
                "end_of_execution",
            ),
            "",
            "",
        ),
        "execution_count": ("integer", False, 0, 9007199254740991, (), "", ""),
        "text": ("string", False, None, 50331648, (), "", ""),
        "timestamp": ("string", False, None, 64, (), "", ""),
        "html": ("string", False, None, 50331648, (), "", ""),
        "markdown": ("string", False, None, 50331648, (), "", ""),
        "svg": ("string", False, None, 50331648, (), "", ""),
        "png": ("string", False, None, 50331648, (), "", ""),
        "jpeg": ("string", False, None, 50331648, (), "", ""),
        "pdf": ("string", False, None, 50331648, (), "", ""),
        "latex": ("string", False, None, 50331648, (), "", ""),
        "json": ("any", False, None, None, (), "", ""),
        "data": ("any", False, None, None, (), "", ""),
        "chart": ("any", False, None, None, (), "", ""),
        "extra": ("object", False, None, 100, (), "", ""),
        "javascript": ("string", False, None, 50331648, (), "", ""),
        "is_main_result": ("boolean", False, None, None, (), "", ""),
        "name": ("string", False, None, 1024, (), "", ""),
        "value": ("string", False, None, 1048576, (), "", ""),
        "traceback": ("string", False, None, 1048576, (), "", ""),
        "exit_code": ("integer", False, -1, 255, (), "", ""),
        "stop_reason": (
            "string",
            False,
            None,
            None,
            (
                "exit",
                "timeout",
                "cancelled",
                "memory_limit",
                "pids_limit",
                "output_limit",
                "disk_full",
                "policy",
                "interpreter_died",
                "sandbox_lost",
            ),
            "",
            "",
        ),
        "timed_out": ("boolean", False, None, None, (), "", ""),
        "state_kept": ("boolean", False, None, None, (), "", ""),
        "reason": ("string", False, None, 64, (), "", ""),
        "context_restarted": ("string", False, None, 64, (), "", ""),
        "stdout_bytes": ("integer", False, 0, 9007199254740991, (), "", ""),
        "stderr_bytes": ("integer", False, 0, 9007199254740991, (), "", ""),
        "replaced": ("boolean", False, None, None, (), "", ""),
        "output_files": ("array", False, None, 1000, (), "WrittenFile", ""),
        "denied": ("array", False, None, 16, (), "Denial", ""),
        "published": ("object", False, None, None, (), "PublishResult", ""),
    },
    "ExecuteRequest": {
        "code": ("string", True, None, 1048576, (), "", ""),
        "context_id": ("string", False, None, 256, (), "", ""),
        "language": ("string", False, None, 64, (), "", ""),
        "env_vars": ("object", False, None, 1000, (), "string", ""),
        "timeout_ms": ("integer", False, 1, 86400000, (), "", ""),
        "output_limit": ("integer", False, 0, 1125899906842624, (), "", ""),
        "max_result_bytes": ("integer", False, 0, 8388608, (), "", ""),
        "max_results": ("integer", False, 0, 64, (), "", ""),
    },
    "Interruption": {
        "interrupted": ("boolean", True, None, None, (), "", ""),
    },
    "WrittenFile": {
        "name": ("string", True, None, 255, (), "", ""),
        "path": ("string", True, None, 4096, (), "", ""),
        "size": ("integer", True, 0, 9007199254740991, (), "", ""),
    },
    "CreateSessionRequest": {
        "session_id": ("string", False, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
    },
    "ExportRecord": {
        "kind": (
            "string",
            True,
            None,
            None,
            ("begin", "clear", "delete", "folder", "file", "data", "symlink", "end"),
            "",
            "",
        ),
        "path": ("string", False, None, 21848, (), "", ""),
        "mode": ("integer", False, 0, 4095, (), "", ""),
        "mtime_s": ("integer", False, -9007199254740991, 9007199254740991, (), "", ""),
        "mtime_ns": ("integer", False, 0, 999999999, (), "", ""),
        "size": ("integer", False, 0, 9007199254740991, (), "", ""),
        "offset": ("integer", False, 0, 9007199254740991, (), "", ""),
        "payload": ("integer", True, 0, 1048576, (), "", ""),
        "target": ("string", False, None, 21848, (), "", ""),
        "manifest_version": ("integer", False, 1, 9007199254740991, (), "", ""),
        "layer_ids": ("array", False, None, 500, (), "string", ""),
        "session_ids": ("array", False, None, 1000, (), "string", ""),
        "records": ("integer", False, 0, 9007199254740991, (), "", ""),
    },
    "ExportRequest": {
        "names_only": ("boolean", False, None, None, (), "", ""),
    },
    "FaultySession": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "class_detail": ("string", True, None, 256, (), "", ""),
        "lease_errors": ("array", False, None, 16, (), "string", ""),
    },
    "LayerStatus": {
        "manifest_version": ("integer", True, 1, 9007199254740991, (), "", ""),
        "workspace_root": ("string", True, None, 4096, (), "", ""),
        "base_root_hash": ("string", True, None, 128, (), "", ""),
        "layers": ("array", True, None, 500, (), "LayerSummary", ""),
        "leased_layer_ids": ("array", True, None, 5000, (), "string", ""),
        "sessions": ("array", True, None, 1000, (), "WorkspaceSession", ""),
        "mount_mode": ("string", True, None, 16, (), "", ""),
        "live_remount": ("boolean", True, None, None, (), "", ""),
    },
    "LayerStatusRequest": {},
    "LayerSummary": {
        "layer_id": ("string", True, 16, 16, (), "", ""),
        "entries": ("integer", True, 0, 9007199254740991, (), "", ""),
        "bytes": ("integer", True, 0, 9007199254740991, (), "", ""),
    },
    "ListSessionsRequest": {},
    "ListSessionsResponse": {
        "sessions": ("array", True, None, 1000, (), "WorkspaceSession", ""),
    },
    "PathConflict": {
        "path": ("string", True, None, 16384, (), "", ""),
        "reason": ("string", True, None, 64, (), "", ""),
    },
    "PublishResult": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "outcome": ("string", True, None, None, ("published", "unchanged", "rejected", "pending"), "", ""),
        "reject_class": (
            "string",
            False,
            None,
            None,
            ("source_conflict", "special_file", "too_deep", "unreadable", "layer_limit"),
            "",
            "",
        ),
        "manifest_version": ("integer", True, 1, 9007199254740991, (), "", ""),
        "layer_id": ("string", False, 16, 16, (), "", ""),
        "entries": ("integer", False, 0, 9007199254740991, (), "", ""),
        "bytes": ("integer", False, 0, 9007199254740991, (), "", ""),
        "merged": ("array", False, None, 100, (), "string", ""),
        "dropped": ("array", False, None, 100, (), "string", ""),
        "conflicts": ("array", False, None, 100, (), "PathConflict", ""),
        "conflict_count": ("integer", False, 0, 9007199254740991, (), "", ""),
    },
    "PublishSessionRequest": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "grace_ms": ("integer", False, 0, 60000, (), "", ""),
    },
    "SessionDestroyed": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "existed": ("boolean", True, None, None, (), "", ""),
    },
    "SessionRequest": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
    },
    "SquashRequest": {},
    "SquashResponse": {
        "manifest_version": ("integer", True, 1, 9007199254740991, (), "", ""),
        "squashed_blocks": ("array", True, None, 500, (), "SquashedBlock", ""),
        "swept_sessions": ("array", True, None, 1000, (), "SweptSession", ""),
        "faulty_sessions": ("array", False, None, 1000, (), "FaultySession", ""),
    },
    "SquashedBlock": {
        "squashed_layer_id": ("string", True, 16, 16, (), "", ""),
        "replaced_layer_ids": ("array", True, None, 500, (), "string", ""),
        "replaced_layers": ("string", True, None, None, ("reclaimed", "leased"), "", ""),
        "blocked_reasons": ("array", False, None, 100, (), "string", ""),
    },
    "SweptSession": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "disposition": (
            "string",
            True,
            None,
            None,
            ("session_gone", "identity", "migrated", "leased", "faulty"),
            "",
            "",
        ),
        "reason": ("string", False, None, 256, (), "", ""),
    },
    "WorkspaceSession": {
        "session_id": ("string", True, 1, 64, (), "", "^[A-Za-z0-9_-]+\\Z"),
        "manifest_version": ("integer", True, 1, 9007199254740991, (), "", ""),
        "layer_ids": ("array", True, None, 500, (), "string", ""),
        "implicit": ("boolean", True, None, None, (), "", ""),
        "created_at": ("string", True, None, 64, (), "", ""),
        "processes": ("integer", True, 0, 9007199254740991, (), "", ""),
    },
    "CloseStdinRequest": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
    },
    "DataEvent": {
        "stdout": ("string", False, None, 16777216, (), "", ""),
        "stderr": ("string", False, None, 16777216, (), "", ""),
        "pty": ("string", False, None, 16777216, (), "", ""),
    },
    "DeniedEvent": {
        "targets": ("array", True, None, 16, (), "Denial", ""),
    },
    "Empty": {},
    "EndEvent": {
        "exitCode": ("integer", False, -1, 255, (), "", ""),
        "exited": ("boolean", False, None, None, (), "", ""),
        "status": ("string", False, None, 256, (), "", ""),
        "error": ("string", False, None, 4096, (), "", ""),
        "stopReason": (
            "string",
            False,
            None,
            None,
            (
                "exit",
                "timeout",
                "cancelled",
                "memory_limit",
                "pids_limit",
                "output_limit",
                "disk_full",
                "policy",
                "interpreter_died",
                "sandbox_lost",
            ),
            "",
            "",
        ),
        "signal": ("integer", False, 0, 255, (), "", ""),
    },
    "InputData": {
        "input": ("object", True, None, None, (), "ProcessInput", ""),
    },
    "InputStart": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
    },
    "KeepaliveEvent": {},
    "ProcessConfig": {
        "cmd": ("string", True, 1, 4096, (), "", ""),
        "args": ("array", False, None, 4096, (), "string", ""),
        "envs": ("object", False, None, 1000, (), "string", ""),
        "cwd": ("string", False, None, 4096, (), "", ""),
    },
    "ProcessConnectRequest": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
        "offset": ("integer", False, 0, 9007199254740991, (), "", ""),
    },
    "ProcessEvent": {
        "start": ("object", False, None, None, (), "StartEvent", ""),
        "data": ("object", False, None, None, (), "DataEvent", ""),
        "keepalive": ("object", False, None, None, (), "KeepaliveEvent", ""),
        "skipped": ("object", False, None, None, (), "SkippedEvent", ""),
        "denied": ("object", False, None, None, (), "DeniedEvent", ""),
        "published": ("object", False, None, None, (), "PublishResult", ""),
        "end": ("object", False, None, None, (), "EndEvent", ""),
    },
    "ProcessInfo": {
        "config": ("object", True, None, None, (), "ProcessConfig", ""),
        "pid": ("integer", True, 0, 9007199254740991, (), "", ""),
        "tag": ("string", False, None, 256, (), "", ""),
    },
    "ProcessInput": {
        "stdin": ("string", False, None, 16777216, (), "", ""),
        "pty": ("string", False, None, 16777216, (), "", ""),
    },
    "ProcessListRequest": {},
    "ProcessListResponse": {
        "processes": ("array", False, None, 1024, (), "ProcessInfo", ""),
    },
    "ProcessMessage": {
        "event": ("object", True, None, None, (), "ProcessEvent", ""),
    },
    "ProcessSelector": {
        "pid": ("integer", False, 0, 9007199254740991, (), "", ""),
        "tag": ("string", False, None, 256, (), "", ""),
    },
    "SendInputRequest": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
        "input": ("object", True, None, None, (), "ProcessInput", ""),
    },
    "SendSignalRequest": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
        "signal": ("string", True, None, None, ("SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT"), "", ""),
    },
    "SkippedEvent": {
        "bytes": ("integer", True, 1, 9007199254740991, (), "", ""),
    },
    "StartEvent": {
        "pid": ("integer", True, 0, 9007199254740991, (), "", ""),
        "offset": ("integer", False, 0, 9007199254740991, (), "", ""),
    },
    "StartRequest": {
        "process": ("object", True, None, None, (), "ProcessConfig", ""),
        "stdin": ("boolean", False, None, None, (), "", ""),
        "pty": ("object", False, None, None, (), "Terminal", ""),
        "tag": ("string", False, None, 256, (), "", ""),
        "workspaceSession": ("string", False, None, 64, (), "", ""),
    },
    "StreamInputMessage": {
        "start": ("object", False, None, None, (), "InputStart", ""),
        "data": ("object", False, None, None, (), "InputData", ""),
        "keepalive": ("object", False, None, None, (), "KeepaliveEvent", ""),
    },
    "Terminal": {
        "size": ("object", False, None, None, (), "TerminalSize", ""),
    },
    "TerminalSize": {
        "cols": ("integer", False, 0, 65535, (), "", ""),
        "rows": ("integer", False, 0, 65535, (), "", ""),
    },
    "UpdateRequest": {
        "process": ("object", True, None, None, (), "ProcessSelector", ""),
        "pty": ("object", False, None, None, (), "Terminal", ""),
    },
    "AgentInfo": {
        "version": ("string", True, None, 64, (), "", ""),
        "envd_version": ("string", False, None, 64, (), "", ""),
        "sandbox_id": ("string", False, None, 1024, (), "", ""),
        "default_user": ("string", False, None, 256, (), "", ""),
        "protocol": ("string", True, None, 64, (), "", ""),
        "languages": ("array", False, None, 64, (), "string", ""),
        "stateful_languages": ("array", False, None, 64, (), "string", ""),
        "users": ("array", False, None, 64, (), "string", ""),
        "deadline": ("string", False, None, 64, (), "", ""),
    },
    "StartTaskRequest": {
        "task_id": ("string", True, 32, 32, (), "", "^[0-9a-f]{32}\\Z"),
        "command": ("string", True, 1, 65536, (), "", ""),
        "cwd": ("string", False, None, 4096, (), "", ""),
        "envs": ("object", False, None, 1000, (), "string", ""),
        "timeout": ("integer", True, 1, 86400, (), "", ""),
        "output_limit": ("integer", False, 0, 1125899906842624, (), "", ""),
    },
    "TaskListRequest": {},
    "TaskListResponse": {
        "tasks": ("array", True, None, 1000, (), "TaskSummary", ""),
    },
    "TaskPage": {
        "data": ("string", True, None, 2796204, (), "", ""),
        "offset": ("integer", True, 0, 9007199254740991, (), "", ""),
        "size": ("integer", True, 0, 9007199254740991, (), "", ""),
        "truncated": ("boolean", True, None, None, (), "", ""),
    },
    "TaskReport": {
        "task": ("object", True, None, None, (), "TaskSummary", ""),
        "stdout": ("object", True, None, None, (), "TaskPage", ""),
        "stderr": ("object", True, None, None, (), "TaskPage", ""),
    },
    "TaskRequest": {
        "task_id": ("string", True, 32, 32, (), "", "^[0-9a-f]{32}\\Z"),
        "stdout_offset": ("integer", False, 0, 9007199254740991, (), "", ""),
        "stderr_offset": ("integer", False, 0, 9007199254740991, (), "", ""),
        "limit": ("integer", False, 0, 2097152, (), "", ""),
        "wait_ms": ("integer", False, 0, 60000, (), "", ""),
    },
    "TaskSummary": {
        "task_id": ("string", True, 32, 32, (), "", "^[0-9a-f]{32}\\Z"),
        "state": (
            "string",
            True,
            None,
            None,
            ("running", "succeeded", "failed", "cancelled", "timed_out", "unknown"),
            "",
            "",
        ),
        "stop_reason": (
            "string",
            False,
            None,
            None,
            (
                "exit",
                "timeout",
                "cancelled",
                "memory_limit",
                "pids_limit",
                "output_limit",
                "disk_full",
                "policy",
                "interpreter_died",
                "sandbox_lost",
            ),
            "",
            "",
        ),
        "exit_code": ("integer", False, -1, 255, (), "", ""),
        "started_at": ("string", True, None, 64, (), "", ""),
        "finished_at": ("string", False, None, 64, (), "", ""),
        "denied": ("array", False, None, 16, (), "Denial", ""),
        "published": ("object", False, None, None, (), "PublishResult", ""),
    },
    "LayerV1": {
        "layer_id": ("string", True, 16, 16, (), "", "^[LS][0-9]{6}-[0-9a-f]{8}\\Z"),
        "entries": ("integer", True, 0, 9007199254740991, (), "", ""),
        "bytes": ("integer", True, 0, 9007199254740991, (), "", ""),
    },
    "ManifestV1": {
        "schema_version": ("integer", True, 1, 1, (), "", ""),
        "version": ("integer", True, 1, 9007199254740991, (), "", ""),
        "layers": ("array", True, None, 500, (), "LayerV1", ""),
    },
    "WorkspaceV1": {
        "schema_version": ("integer", True, 1, 1, (), "", ""),
        "base_root_hash": ("string", True, None, 128, (), "", ""),
    },
}

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class FieldError(ValueError):
    """A field breaks a rule. Holds the name of both, never the value."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def check(message: str, value: object, where: str = "") -> None:
    """Check a message. Fields that the table does not know are ignored, as the protocol asks.

    Raises:
        FieldError: names the field and the rule.
    """
    if not isinstance(value, dict):
        raise FieldError(where or message, "type")
    known = cast("dict[str, Any]", value)
    for name, field in FIELDS[message].items():
        path = f"{where}.{name}" if where else name
        if known.get(name) is None:
            if field[1]:
                raise FieldError(path, "required")
        else:
            _check_field(path, field, known[name])


def _check_field(path: str, field: _Field, value: Any) -> None:
    kind, _, least, most, allowed, inside, pattern = field
    if kind == "any":
        return
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise FieldError(path, "type")
    if kind != "boolean":
        size = value if kind == "integer" else len(value)
        if least is not None and size < least:
            raise FieldError(path, "minimum")
        if most is not None and size > most:
            raise FieldError(path, "maximum")
    if allowed and value not in allowed:
        raise FieldError(path, "enum")
    if pattern and re.search(pattern, value) is None:
        raise FieldError(path, "pattern")
    if inside:
        _check_inside(path, kind, inside, value)


def _check_inside(path: str, kind: str, inside: str, value: Any) -> None:
    if kind == "object" and inside in FIELDS:
        check(inside, value, path)
        return
    for item in value.values() if kind == "object" else value:
        if inside in FIELDS:
            check(inside, item, path)
        elif not isinstance(item, _TYPES[inside]):
            raise FieldError(path, "type")
