"""Closed sets of names. Generated from schemas/common, schemas/lifecycle and schemas/errors; do not edit."""

from typing import Final, Literal, TypeAlias

BackendCause: TypeAlias = Literal[
    "architecture_unsupported",
    "capabilities_undroppable",
    "docker_access_denied",
    "docker_context_unknown",
    "docker_elsewhere",
    "docker_image_unset",
    "docker_manager_missing",
    "docker_mounts_blocked",
    "docker_network_blocked",
    "docker_networks_used_up",
    "docker_not_linux",
    "docker_not_running",
    "docker_other_processor",
    "docker_other_user",
    "docker_python_unusable",
    "docker_state_unusable",
    "docker_tls_refused",
    "docker_too_old",
    "egress_failed",
    "id_range_unavailable",
    "idmapped_mounts_unavailable",
    "kernel_too_old",
    "mounts_blocked",
    "namespaces_blocked",
    "no_new_privileges_unavailable",
    "overlay_unavailable",
    "platform_unsupported",
    "proc_mount_blocked",
    "python_unreadable",
    "runtime_directory_unusable",
    "seccomp_unavailable",
    "state_directory_unusable",
    "user_namespaces_disabled",
    "user_namespaces_restricted",
    "zygote_failed",
]
BACKEND_CAUSE_VALUES: Final[tuple[BackendCause, ...]] = (
    "architecture_unsupported",
    "capabilities_undroppable",
    "docker_access_denied",
    "docker_context_unknown",
    "docker_elsewhere",
    "docker_image_unset",
    "docker_manager_missing",
    "docker_mounts_blocked",
    "docker_network_blocked",
    "docker_networks_used_up",
    "docker_not_linux",
    "docker_not_running",
    "docker_other_processor",
    "docker_other_user",
    "docker_python_unusable",
    "docker_state_unusable",
    "docker_tls_refused",
    "docker_too_old",
    "egress_failed",
    "id_range_unavailable",
    "idmapped_mounts_unavailable",
    "kernel_too_old",
    "mounts_blocked",
    "namespaces_blocked",
    "no_new_privileges_unavailable",
    "overlay_unavailable",
    "platform_unsupported",
    "proc_mount_blocked",
    "python_unreadable",
    "runtime_directory_unusable",
    "seccomp_unavailable",
    "state_directory_unusable",
    "user_namespaces_disabled",
    "user_namespaces_restricted",
    "zygote_failed",
)

BaseProblem: TypeAlias = Literal["special_file", "unreadable", "changing", "disk_full"]
BASE_PROBLEM_VALUES: Final[tuple[BaseProblem, ...]] = ("special_file", "unreadable", "changing", "disk_full")

Capability: TypeAlias = Literal[
    "lifecycle",
    "timeout",
    "renew_on_request",
    "exec",
    "files",
    "transfers",
    "tasks",
    "code",
    "code_languages",
    "users_root",
    "idempotent_create",
    "metadata",
    "region",
    "inspect",
    "limits_cpu",
    "limits_memory",
    "limits_pids",
    "limits_disk",
    "egress",
    "listener",
    "diff",
    "logs",
    "prune",
    "pause",
]
CAPABILITY_VALUES: Final[tuple[Capability, ...]] = (
    "lifecycle",
    "timeout",
    "renew_on_request",
    "exec",
    "files",
    "transfers",
    "tasks",
    "code",
    "code_languages",
    "users_root",
    "idempotent_create",
    "metadata",
    "region",
    "inspect",
    "limits_cpu",
    "limits_memory",
    "limits_pids",
    "limits_disk",
    "egress",
    "listener",
    "diff",
    "logs",
    "prune",
    "pause",
)

Change: TypeAlias = Literal["added", "modified", "deleted"]
CHANGE_VALUES: Final[tuple[Change, ...]] = ("added", "modified", "deleted")

ChangeType: TypeAlias = Literal[
    "EVENT_TYPE_UNSPECIFIED",
    "EVENT_TYPE_CREATE",
    "EVENT_TYPE_WRITE",
    "EVENT_TYPE_REMOVE",
    "EVENT_TYPE_RENAME",
    "EVENT_TYPE_CHMOD",
]
CHANGE_TYPE_VALUES: Final[tuple[ChangeType, ...]] = (
    "EVENT_TYPE_UNSPECIFIED",
    "EVENT_TYPE_CREATE",
    "EVENT_TYPE_WRITE",
    "EVENT_TYPE_REMOVE",
    "EVENT_TYPE_RENAME",
    "EVENT_TYPE_CHMOD",
)

ChangedPart: TypeAlias = Literal["content", "kind", "mode", "owner", "target"]
CHANGED_PART_VALUES: Final[tuple[ChangedPart, ...]] = ("content", "kind", "mode", "owner", "target")

EntryKind: TypeAlias = Literal["file", "directory", "symlink", "fifo", "socket", "device"]
ENTRY_KIND_VALUES: Final[tuple[EntryKind, ...]] = ("file", "directory", "symlink", "fifo", "socket", "device")

EntryType: TypeAlias = Literal["FILE_TYPE_UNSPECIFIED", "FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY", "FILE_TYPE_SYMLINK"]
ENTRY_TYPE_VALUES: Final[tuple[EntryType, ...]] = (
    "FILE_TYPE_UNSPECIFIED",
    "FILE_TYPE_FILE",
    "FILE_TYPE_DIRECTORY",
    "FILE_TYPE_SYMLINK",
)

EventKind: TypeAlias = Literal["started", "call", "command_ended", "code_ended", "denied", "ended"]
EVENT_KIND_VALUES: Final[tuple[EventKind, ...]] = ("started", "call", "command_ended", "code_ended", "denied", "ended")

ExportFormat: TypeAlias = Literal["dir", "tar", "tar-zst"]
EXPORT_FORMAT_VALUES: Final[tuple[ExportFormat, ...]] = ("dir", "tar", "tar-zst")

ExportProblem: TypeAlias = Literal["malformed", "torn", "unsafe_name", "too_large"]
EXPORT_PROBLEM_VALUES: Final[tuple[ExportProblem, ...]] = ("malformed", "torn", "unsafe_name", "too_large")

ExportRecordKind: TypeAlias = Literal["begin", "clear", "delete", "folder", "file", "data", "symlink", "end"]
EXPORT_RECORD_KIND_VALUES: Final[tuple[ExportRecordKind, ...]] = (
    "begin",
    "clear",
    "delete",
    "folder",
    "file",
    "data",
    "symlink",
    "end",
)

FileType: TypeAlias = Literal["file", "directory", "symlink", "other"]
FILE_TYPE_VALUES: Final[tuple[FileType, ...]] = ("file", "directory", "symlink", "other")

IncompleteReason: TypeAlias = Literal["too_many", "too_deep", "too_slow", "unreadable"]
INCOMPLETE_REASON_VALUES: Final[tuple[IncompleteReason, ...]] = ("too_many", "too_deep", "too_slow", "unreadable")

Language: TypeAlias = Literal["python", "javascript", "shell", "typescript", "r"]
LANGUAGE_VALUES: Final[tuple[Language, ...]] = ("python", "javascript", "shell", "typescript", "r")

LeftoverKind: TypeAlias = Literal["sandbox", "unfinished", "template", "socket", "control_group", "log", "old_state"]
LEFTOVER_KIND_VALUES: Final[tuple[LeftoverKind, ...]] = (
    "sandbox",
    "unfinished",
    "template",
    "socket",
    "control_group",
    "log",
    "old_state",
)

LimitResource: TypeAlias = Literal["cpu", "memory", "process_memory", "pids", "disk", "inodes", "open_files"]
LIMIT_RESOURCE_VALUES: Final[tuple[LimitResource, ...]] = (
    "cpu",
    "memory",
    "process_memory",
    "pids",
    "disk",
    "inodes",
    "open_files",
)

LineType: TypeAlias = Literal[
    "number_of_executions", "stdout", "stderr", "result", "error", "keepalive", "context_restarted", "end_of_execution"
]
LINE_TYPE_VALUES: Final[tuple[LineType, ...]] = (
    "number_of_executions",
    "stdout",
    "stderr",
    "result",
    "error",
    "keepalive",
    "context_restarted",
    "end_of_execution",
)

ManagedState: TypeAlias = Literal["creating", "ready", "stopping", "stopped", "failed"]
MANAGED_STATE_VALUES: Final[tuple[ManagedState, ...]] = ("creating", "ready", "stopping", "stopped", "failed")

PublishOutcome: TypeAlias = Literal["published", "unchanged", "rejected", "pending"]
PUBLISH_OUTCOME_VALUES: Final[tuple[PublishOutcome, ...]] = ("published", "unchanged", "rejected", "pending")

RecordProblem: TypeAlias = Literal["newer", "older", "damaged"]
RECORD_PROBLEM_VALUES: Final[tuple[RecordProblem, ...]] = ("newer", "older", "damaged")

RejectClass: TypeAlias = Literal["source_conflict", "special_file", "too_deep", "unreadable", "layer_limit"]
REJECT_CLASS_VALUES: Final[tuple[RejectClass, ...]] = (
    "source_conflict",
    "special_file",
    "too_deep",
    "unreadable",
    "layer_limit",
)

ReplacedLayers: TypeAlias = Literal["reclaimed", "leased"]
REPLACED_LAYERS_VALUES: Final[tuple[ReplacedLayers, ...]] = ("reclaimed", "leased")

ResultType: TypeAlias = Literal[
    "text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript", "data", "chart"
]
RESULT_TYPE_VALUES: Final[tuple[ResultType, ...]] = (
    "text",
    "html",
    "markdown",
    "svg",
    "png",
    "jpeg",
    "pdf",
    "latex",
    "json",
    "javascript",
    "data",
    "chart",
)

SandboxStatus: TypeAlias = Literal["creating", "running", "paused", "pausing", "stopping", "stopped", "error"]
SANDBOX_STATUS_VALUES: Final[tuple[SandboxStatus, ...]] = (
    "creating",
    "running",
    "paused",
    "pausing",
    "stopping",
    "stopped",
    "error",
)

Signal: TypeAlias = Literal["SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT"]
SIGNAL_VALUES: Final[tuple[Signal, ...]] = ("SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT")

SquashDisposition: TypeAlias = Literal["session_gone", "identity", "migrated", "leased", "faulty"]
SQUASH_DISPOSITION_VALUES: Final[tuple[SquashDisposition, ...]] = (
    "session_gone",
    "identity",
    "migrated",
    "leased",
    "faulty",
)

StartProblem: TypeAlias = Literal["ended", "no_answer"]
START_PROBLEM_VALUES: Final[tuple[StartProblem, ...]] = ("ended", "no_answer")

StopReason: TypeAlias = Literal[
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
]
STOP_REASON_VALUES: Final[tuple[StopReason, ...]] = (
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
)

TaskState: TypeAlias = Literal["running", "succeeded", "failed", "cancelled", "timed_out", "unknown"]
TASK_STATE_VALUES: Final[tuple[TaskState, ...]] = (
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "unknown",
)

TextEncoding: TypeAlias = Literal["utf-8", "utf-16", "latin-1", "ascii", "base64"]
TEXT_ENCODING_VALUES: Final[tuple[TextEncoding, ...]] = ("utf-8", "utf-16", "latin-1", "ascii", "base64")

WriteEncoding: TypeAlias = Literal["utf-8", "base64"]
WRITE_ENCODING_VALUES: Final[tuple[WriteEncoding, ...]] = ("utf-8", "base64")
