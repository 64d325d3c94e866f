"""Errors that the agent answers, as the catalogue says. Generated from schemas/errors/catalog.json; do not edit."""

from typing import Final, NamedTuple


class Spec(NamedTuple):
    """One error: its Connect code, its HTTP status, its static text, the keys that may stand beside its code."""

    connect: str
    http: int
    message: str
    details: tuple[str, ...]


ERRORS: Final[dict[str, Spec]] = {
    "authentication_failed": Spec("unauthenticated", 401, "The credential was refused.", ("http_status",)),
    "command_failed_to_start": Spec("internal", 500, "The command could not be started.", ()),
    "command_timeout": Spec(
        "deadline_exceeded", 504, "The command did not end in time and was stopped, with everything it had started.", ()
    ),
    "context_limit": Spec(
        "resource_exhausted", 429, "This sandbox has as many interpreter contexts as it may have.", ("limit",)
    ),
    "context_not_found": Spec("not_found", 404, "There is no such interpreter context in the sandbox.", ()),
    "cwd_not_found": Spec("not_found", 404, "The working directory does not exist.", ()),
    "disk_full": Spec("resource_exhausted", 507, "The disk of the sandbox is full.", ()),
    "file_exists": Spec("failed_precondition", 409, "The path already exists.", ()),
    "file_is_directory": Spec("invalid_argument", 400, "The path is a directory.", ()),
    "file_not_directory": Spec("invalid_argument", 400, "The path, or a part of it, is not a directory.", ()),
    "file_not_found": Spec("not_found", 404, "The file or directory does not exist.", ()),
    "file_permission_denied": Spec("permission_denied", 403, "The user of the sandbox may not access that path.", ()),
    "file_special": Spec("invalid_argument", 400, "The path is a device, pipe or socket, not a file.", ()),
    "file_too_large": Spec("resource_exhausted", 413, "The content is larger than the limit.", ("size", "limit")),
    "idempotency_conflict": Spec(
        "failed_precondition", 409, "The idempotency key was used before with other arguments.", ()
    ),
    "internal_error": Spec("internal", 500, "Something failed inside the server.", ()),
    "interpreter_failed": Spec("internal", 500, "The interpreter of the sandbox did not start.", ()),
    "invalid_argument": Spec("invalid_argument", 400, "An argument is not valid.", ("field", "rule", "limit")),
    "layer_store_damaged": Spec(
        "internal", 500, "The layer store of the sandbox is damaged, or belongs to another base.", ()
    ),
    "overlay_failed": Spec("unavailable", 503, "The kernel refused to mount the layers of the workspace.", ()),
    "path_invalid": Spec("invalid_argument", 400, "The path cannot be used.", ()),
    "process_not_found": Spec("not_found", 404, "There is no such process in the sandbox.", ()),
    "provider_unavailable": Spec("unavailable", 502, "The provider could not be reached.", ("http_status",)),
    "squash_in_flight": Spec("failed_precondition", 409, "A squash of these layers runs already.", ()),
    "task_limit": Spec("resource_exhausted", 429, "The sandbox runs as many tasks as it may.", ()),
    "task_not_found": Spec("not_found", 404, "There is no such task in that sandbox.", ()),
    "transfer_conflict": Spec(
        "failed_precondition", 409, "The part does not fit what the transfer has so far.", ("offset",)
    ),
    "transfer_not_found": Spec(
        "not_found",
        404,
        "There is no such transfer in that sandbox: it never began, it is complete, or it was idle for too long.",
        (),
    ),
    "unsupported_language": Spec("unimplemented", 400, "This template cannot run that language.", ("available",)),
    "unsupported_operation": Spec(
        "unimplemented", 501, "This provider does not support that operation.", ("capability",)
    ),
    "unsupported_user": Spec("unimplemented", 400, "This sandbox has no such user.", ()),
    "workspace_conflict": Spec(
        "failed_precondition",
        409,
        "Somebody else changed the same files of the workspace at the same time, again and again; nothing was written.",
        (),
    ),
    "workspace_session_limit": Spec(
        "resource_exhausted", 429, "The sandbox has as many workspace sessions as it may have.", ()
    ),
    "workspace_session_not_found": Spec("not_found", 404, "There is no such workspace session in the sandbox.", ()),
}

LANGUAGES: Final[tuple[str, ...]] = ("python", "javascript", "shell", "typescript", "r")
STOP_REASONS: Final[tuple[str, ...]] = (
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
