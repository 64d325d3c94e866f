"""Every error of the catalogue as a class. Generated from schemas/errors/catalog.json; do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from cloche_contract._gen.enums import (
    BackendCause,
    BaseProblem,
    Capability,
    ExportProblem,
    Language,
    LimitResource,
    ManagedState,
    RecordProblem,
    StartProblem,
)
from cloche_contract.kernel.failure import ClocheError, Retry


class AuthenticationError(ClocheError):
    """The credential is missing or was refused."""

    category: ClassVar[str] = "authentication"
    exit_code: ClassVar[int] = 3
    kind: ClassVar[str] = "unauthorized"


class ConfigurationError(ClocheError):
    """A setting is wrong or missing."""

    category: ClassVar[str] = "configuration"
    exit_code: ClassVar[int] = 2
    kind: ClassVar[str] = "config_error"


class Conflict(ClocheError):
    """It contradicts something that already is."""

    category: ClassVar[str] = "conflict"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "invalid_request"


class ExecutionError(ClocheError):
    """A program could not be run."""

    category: ClassVar[str] = "execution"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "operation_failed"


class Internal(ClocheError):
    """A defect on our side."""

    category: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "internal_error"


class InvalidInput(ClocheError):
    """The caller asked for something that is not allowed."""

    category: ClassVar[str] = "invalid_input"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "invalid_request"


class LimitError(ClocheError):
    """A limit was reached."""

    category: ClassVar[str] = "limit"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "operation_failed"


class NotFound(ClocheError):
    """What was named does not exist or is not visible."""

    category: ClassVar[str] = "not_found"
    exit_code: ClassVar[int] = 4
    kind: ClassVar[str] = "not_found"


class AccessDenied(ClocheError):
    """The account or user may not do this."""

    category: ClassVar[str] = "permission"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "unauthorized"


class QuotaError(ClocheError):
    """The account or machine has no more room."""

    category: ClassVar[str] = "quota"
    exit_code: ClassVar[int] = 6
    kind: ClassVar[str] = "server_busy"


class TimeoutFailure(ClocheError):
    """It took too long."""

    category: ClassVar[str] = "timeout"
    exit_code: ClassVar[int] = 5
    kind: ClassVar[str] = "connection_error"


class Unavailable(ClocheError):
    """This machine cannot do it."""

    category: ClassVar[str] = "unavailable"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "connection_error"


class Unreachable(ClocheError):
    """The other side does not answer."""

    category: ClassVar[str] = "unreachable"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "connection_error"


class Unsupported(ClocheError):
    """The provider or template cannot do this."""

    category: ClassVar[str] = "unsupported"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "operation_failed"


class AccessKeyRefused(AuthenticationError):
    """An access key pair is configured and no API key. The sandbox API of the platform takes an API key alone."""

    code: ClassVar[str] = "access_key_refused"
    error_code: ClassVar[str] = "E1003"
    message: ClassVar[str] = (
        "An access key pair is configured and no API key. The sandbox API of the platform takes an API key alone."
    )
    suggestion: ClassVar[str] = "Make an API key in the console of the platform, and set ABX_SANDBOX_API_KEY."
    http_status: ClassVar[int] = 401
    connect_code: ClassVar[str] = "unauthenticated"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class AuditUnavailable(Unavailable):
    """The call was not carried out: it cannot be written into the audit file."""

    code: ClassVar[str] = "audit_unavailable"
    error_code: ClassVar[str] = "E8050"
    message: ClassVar[str] = "The call was not carried out: it cannot be written into the audit file."
    suggestion: ClassVar[str] = (
        "The operator of this server has to make the audit file writable, or to make room for it."
    )
    http_status: ClassVar[int] = 503
    connect_code: ClassVar[str] = "unavailable"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class AuthenticationFailed(AuthenticationError):
    """The credential was refused."""

    code: ClassVar[str] = "authentication_failed"
    error_code: ClassVar[str] = "E1001"
    message: ClassVar[str] = "The credential was refused."
    suggestion: ClassVar[str] = "Check the API key in the configuration of this process."
    http_status: ClassVar[int] = 401
    connect_code: ClassVar[str] = "unauthenticated"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class BackendUnavailable(Unavailable):
    """This machine cannot isolate a sandbox, so none is made."""

    code: ClassVar[str] = "backend_unavailable"
    error_code: ClassVar[str] = "E8040"
    message: ClassVar[str] = "This machine cannot isolate a sandbox, so none is made."
    suggestion: ClassVar[str] = "Run abx doctor to see the cause and the fix."
    http_status: ClassVar[int] = 503
    connect_code: ClassVar[str] = "unavailable"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("cause",)

    def __init__(self, *, cause: BackendCause) -> None:
        super().__init__({"cause": cause})


class BaseUnusable(ExecutionError):
    """The workspace cannot be copied into a shared base."""

    code: ClassVar[str] = "base_unusable"
    error_code: ClassVar[str] = "E2023"
    message: ClassVar[str] = "The workspace cannot be copied into a shared base."
    suggestion: ClassVar[str] = (
        "Remove what keeps it from being copied, or wait until nothing writes in it, then call again."
    )
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ("reason",)

    def __init__(self, *, reason: BaseProblem) -> None:
        super().__init__({"reason": reason})


class Busy(LimitError):
    """As many calls run at the same time as this client may have."""

    code: ClassVar[str] = "busy"
    error_code: ClassVar[str] = "E1007"
    message: ClassVar[str] = "As many calls run at the same time as this client may have."
    suggestion: ClassVar[str] = "Wait until one of them has ended, then call again."
    http_status: ClassVar[int] = 429
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ("retry_after_s",)

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__({"retry_after_s": retry_after_s})


class CommandFailedToStart(ExecutionError):
    """The command could not be started."""

    code: ClassVar[str] = "command_failed_to_start"
    error_code: ClassVar[str] = "E3002"
    message: ClassVar[str] = "The command could not be started."
    suggestion: ClassVar[str] = (
        "Check that the program exists in the template and that the sandbox has memory and processes left."
    )
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class CommandTimeout(TimeoutFailure):
    """The command did not end in time and was stopped, with everything it had started."""

    code: ClassVar[str] = "command_timeout"
    error_code: ClassVar[str] = "E3001"
    message: ClassVar[str] = "The command did not end in time and was stopped, with everything it had started."
    suggestion: ClassVar[str] = "Pass a larger timeout, or start it in the background."
    http_status: ClassVar[int] = 504
    connect_code: ClassVar[str] = "deadline_exceeded"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ConfigurationInvalid(ConfigurationError):
    """A setting is not valid."""

    code: ClassVar[str] = "configuration_invalid"
    error_code: ClassVar[str] = "E1010"
    message: ClassVar[str] = "A setting is not valid."
    suggestion: ClassVar[str] = "Correct the named setting."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("setting",)

    def __init__(self, *, setting: str) -> None:
        super().__init__({"setting": setting})


class ContextLimit(QuotaError):
    """This sandbox has as many interpreter contexts as it may have."""

    code: ClassVar[str] = "context_limit"
    error_code: ClassVar[str] = "E3013"
    message: ClassVar[str] = "This sandbox has as many interpreter contexts as it may have."
    suggestion: ClassVar[str] = "Remove a context that is no longer needed, then try again."
    http_status: ClassVar[int] = 429
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("limit",)

    def __init__(self, *, limit: int) -> None:
        super().__init__({"limit": limit})


class ContextNotFound(NotFound):
    """There is no such interpreter context in the sandbox."""

    code: ClassVar[str] = "context_not_found"
    error_code: ClassVar[str] = "E3010"
    message: ClassVar[str] = "There is no such interpreter context in the sandbox."
    suggestion: ClassVar[str] = "Leave the context out to use the default one."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class CwdNotFound(NotFound):
    """The working directory does not exist."""

    code: ClassVar[str] = "cwd_not_found"
    error_code: ClassVar[str] = "E3007"
    message: ClassVar[str] = "The working directory does not exist."
    suggestion: ClassVar[str] = "Pass a cwd that exists, or leave it out."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class DefaultSandboxLost(NotFound):
    """The default sandbox of this session expired or was killed elsewhere. Its files and state are gone."""

    code: ClassVar[str] = "default_sandbox_lost"
    error_code: ClassVar[str] = "E2012"
    message: ClassVar[str] = (
        "The default sandbox of this session expired or was killed elsewhere. Its files and state are gone."
    )
    suggestion: ClassVar[str] = "Call again: the next call makes a fresh default sandbox."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class DestinationNotAllowed(InvalidInput):
    """The destination may not be written: it is the root, a home directory, what the manager keeps, or above one of them."""

    code: ClassVar[str] = "destination_not_allowed"
    error_code: ClassVar[str] = "E2027"
    message: ClassVar[str] = (
        "The destination may not be written: it is the root, a home directory, what the manager keeps, or above one of them."
    )
    suggestion: ClassVar[str] = "Pass a directory or an archive of its own, below a directory that is made for it."
    http_status: ClassVar[int] = 403
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class DestinationUnusable(ExecutionError):
    """The destination cannot be written: its parent is not there, it is of another kind, or the disk refuses it."""

    code: ClassVar[str] = "destination_unusable"
    error_code: ClassVar[str] = "E2028"
    message: ClassVar[str] = (
        "The destination cannot be written: its parent is not there, it is of another kind, or the disk refuses it."
    )
    suggestion: ClassVar[str] = (
        "Make the parent directory, or pass another destination: a directory for dir, a file for tar and tar-zst."
    )
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class DestroyFailed(ExecutionError):
    """The Docker Engine did not remove the sandbox; its record is kept, in state failed."""

    code: ClassVar[str] = "destroy_failed"
    error_code: ClassVar[str] = "E2026"
    message: ClassVar[str] = "The Docker Engine did not remove the sandbox; its record is kept, in state failed."
    suggestion: ClassVar[str] = "Call again when the engine works; abx docker doctor tells what is wrong with it."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class DiskFull(QuotaError):
    """The disk of the sandbox is full."""

    code: ClassVar[str] = "disk_full"
    error_code: ClassVar[str] = "E4010"
    message: ClassVar[str] = "The disk of the sandbox is full."
    suggestion: ClassVar[str] = "Remove files that are no longer needed, then try again."
    http_status: ClassVar[int] = 507
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ExportRejected(ExecutionError):
    """The sandbox sent changes that cannot be trusted; nothing was written."""

    code: ClassVar[str] = "export_rejected"
    error_code: ClassVar[str] = "E2029"
    message: ClassVar[str] = "The sandbox sent changes that cannot be trusted; nothing was written."
    suggestion: ClassVar[str] = "Do not use this sandbox any more. Destroy it and make a new one."
    http_status: ClassVar[int] = 502
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("reason",)

    def __init__(self, *, reason: ExportProblem) -> None:
        super().__init__({"reason": reason})


class FileExists(Conflict):
    """The path already exists."""

    code: ClassVar[str] = "file_exists"
    error_code: ClassVar[str] = "E4009"
    message: ClassVar[str] = "The path already exists."
    suggestion: ClassVar[str] = "Use another path, or remove it first."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FileIsDirectory(InvalidInput):
    """The path is a directory."""

    code: ClassVar[str] = "file_is_directory"
    error_code: ClassVar[str] = "E4005"
    message: ClassVar[str] = "The path is a directory."
    suggestion: ClassVar[str] = "Pass the path of a file. list_files shows what is there."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FileNotDirectory(InvalidInput):
    """The path, or a part of it, is not a directory."""

    code: ClassVar[str] = "file_not_directory"
    error_code: ClassVar[str] = "E4006"
    message: ClassVar[str] = "The path, or a part of it, is not a directory."
    suggestion: ClassVar[str] = "Pass the path of a directory."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FileNotFound(NotFound):
    """The file or directory does not exist."""

    code: ClassVar[str] = "file_not_found"
    error_code: ClassVar[str] = "E4001"
    message: ClassVar[str] = "The file or directory does not exist."
    suggestion: ClassVar[str] = "Check the path. list_files shows what is there."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FilePermissionDenied(AccessDenied):
    """The user of the sandbox may not access that path."""

    code: ClassVar[str] = "file_permission_denied"
    error_code: ClassVar[str] = "E4002"
    message: ClassVar[str] = "The user of the sandbox may not access that path."
    suggestion: ClassVar[str] = "Use a path below the home directory or /tmp."
    http_status: ClassVar[int] = 403
    connect_code: ClassVar[str] = "permission_denied"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FileSpecial(InvalidInput):
    """The path is a device, pipe or socket, not a file."""

    code: ClassVar[str] = "file_special"
    error_code: ClassVar[str] = "E4007"
    message: ClassVar[str] = "The path is a device, pipe or socket, not a file."
    suggestion: ClassVar[str] = "Pass the path of a regular file."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class FileTooLarge(LimitError):
    """The content is larger than the limit."""

    code: ClassVar[str] = "file_too_large"
    error_code: ClassVar[str] = "E4003"
    message: ClassVar[str] = "The content is larger than the limit."
    suggestion: ClassVar[str] = (
        "Work on parts of it. download_file takes offset and length. upload_file takes offset and last. run_command has head, tail and split."
    )
    http_status: ClassVar[int] = 413
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("size", "limit")

    def __init__(self, *, size: int | None = None, limit: int | None = None) -> None:
        super().__init__({"size": size, "limit": limit})


class IdempotencyConflict(Conflict):
    """The idempotency key was used before with other arguments."""

    code: ClassVar[str] = "idempotency_conflict"
    error_code: ClassVar[str] = "E2005"
    message: ClassVar[str] = "The idempotency key was used before with other arguments."
    suggestion: ClassVar[str] = "Use a new key for a new sandbox."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ImageNotFound(NotFound):
    """The Docker Engine has no image of that name."""

    code: ClassVar[str] = "image_not_found"
    error_code: ClassVar[str] = "E2020"
    message: ClassVar[str] = "The Docker Engine has no image of that name."
    suggestion: ClassVar[str] = (
        "Check the name, and make or pull the image; nothing is pulled here. list_docker_images shows what is there."
    )
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class InternalError(Internal):
    """Something failed inside the server."""

    code: ClassVar[str] = "internal_error"
    error_code: ClassVar[str] = "E9000"
    message: ClassVar[str] = "Something failed inside the server."
    suggestion: ClassVar[str] = "Try again; if it fails again, look at the log of this process and report it."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class InterpreterFailed(ExecutionError):
    """The interpreter of the sandbox did not start."""

    code: ClassVar[str] = "interpreter_failed"
    error_code: ClassVar[str] = "E3006"
    message: ClassVar[str] = "The interpreter of the sandbox did not start."
    suggestion: ClassVar[str] = "Try again; if it fails again, create a new sandbox."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class InvalidArgument(InvalidInput):
    """An argument is not valid."""

    code: ClassVar[str] = "invalid_argument"
    error_code: ClassVar[str] = "E1000"
    message: ClassVar[str] = "An argument is not valid."
    suggestion: ClassVar[str] = "Correct the named argument and call again."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("field", "rule", "limit")

    def __init__(self, *, field: str, rule: str, limit: int | None = None) -> None:
        super().__init__({"field": field, "rule": rule, "limit": limit})


class LayerStoreDamaged(Internal):
    """The layer store of the sandbox is damaged, or belongs to another base."""

    code: ClassVar[str] = "layer_store_damaged"
    error_code: ClassVar[str] = "E3018"
    message: ClassVar[str] = "The layer store of the sandbox is damaged, or belongs to another base."
    suggestion: ClassVar[str] = "Recreate the sandbox; nothing in the store was changed."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class NoDefaultSandbox(NotFound):
    """This session has no default sandbox."""

    code: ClassVar[str] = "no_default_sandbox"
    error_code: ClassVar[str] = "E2008"
    message: ClassVar[str] = "This session has no default sandbox."
    suggestion: ClassVar[str] = "Pass sandbox_id. Or call create_sandbox first."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class NotText(InvalidInput):
    """The file is not text in that encoding."""

    code: ClassVar[str] = "not_text"
    error_code: ClassVar[str] = "E4004"
    message: ClassVar[str] = "The file is not text in that encoding."
    suggestion: ClassVar[str] = "Read it with encoding base64."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class OutputMismatch(Internal):
    """The result did not fit its schema and was withheld."""

    code: ClassVar[str] = "output_mismatch"
    error_code: ClassVar[str] = "E9001"
    message: ClassVar[str] = "The result did not fit its schema and was withheld."
    suggestion: ClassVar[str] = "This is a defect of the server. Try another tool, and report it."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class OverlayFailed(Unavailable):
    """The kernel refused to mount the layers of the workspace."""

    code: ClassVar[str] = "overlay_failed"
    error_code: ClassVar[str] = "E3016"
    message: ClassVar[str] = "The kernel refused to mount the layers of the workspace."
    suggestion: ClassVar[str] = (
        "Give the agent CAP_SYS_ADMIN or a user namespace, an AppArmor profile that allows mount, and a store on a file system that overlayfs takes as its upper layer."
    )
    http_status: ClassVar[int] = 503
    connect_code: ClassVar[str] = "unavailable"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class PathInvalid(InvalidInput):
    """The path cannot be used."""

    code: ClassVar[str] = "path_invalid"
    error_code: ClassVar[str] = "E4008"
    message: ClassVar[str] = "The path cannot be used."
    suggestion: ClassVar[str] = "Pass an absolute path of ordinary length, without loops of links."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class PermissionDenied(AccessDenied):
    """The account may not do this."""

    code: ClassVar[str] = "permission_denied"
    error_code: ClassVar[str] = "E1006"
    message: ClassVar[str] = "The account may not do this."
    suggestion: ClassVar[str] = "Use an account that is permitted to, or ask its administrator."
    http_status: ClassVar[int] = 403
    connect_code: ClassVar[str] = "permission_denied"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class ProcessNotFound(NotFound):
    """There is no such process in the sandbox."""

    code: ClassVar[str] = "process_not_found"
    error_code: ClassVar[str] = "E3009"
    message: ClassVar[str] = "There is no such process in the sandbox."
    suggestion: ClassVar[str] = "List the processes to see what runs."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ProviderFailed(Unreachable):
    """The provider failed."""

    code: ClassVar[str] = "provider_failed"
    error_code: ClassVar[str] = "E8005"
    message: ClassVar[str] = "The provider failed."
    suggestion: ClassVar[str] = "Try again; if it fails again, look at the log of this process."
    http_status: ClassVar[int] = 502
    connect_code: ClassVar[str] = "unavailable"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class ProviderMismatch(Conflict):
    """The sandbox id names another provider than the provider argument."""

    code: ClassVar[str] = "provider_mismatch"
    error_code: ClassVar[str] = "E8030"
    message: ClassVar[str] = "The sandbox id names another provider than the provider argument."
    suggestion: ClassVar[str] = "Pass only one of them."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ProviderTimeout(TimeoutFailure):
    """The provider did not answer in time."""

    code: ClassVar[str] = "provider_timeout"
    error_code: ClassVar[str] = "E5002"
    message: ClassVar[str] = "The provider did not answer in time."
    suggestion: ClassVar[str] = "Try again; what was asked may still have happened."
    http_status: ClassVar[int] = 504
    connect_code: ClassVar[str] = "deadline_exceeded"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class ProviderUnavailable(Unreachable):
    """The provider could not be reached."""

    code: ClassVar[str] = "provider_unavailable"
    error_code: ClassVar[str] = "E5001"
    message: ClassVar[str] = "The provider could not be reached."
    suggestion: ClassVar[str] = "Check the configuration and the network, then try again."
    http_status: ClassVar[int] = 502
    connect_code: ClassVar[str] = "unavailable"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class ProviderUnknown(ConfigurationError):
    """There is no provider of that name here."""

    code: ClassVar[str] = "provider_unknown"
    error_code: ClassVar[str] = "E8001"
    message: ClassVar[str] = "There is no provider of that name here."
    suggestion: ClassVar[str] = "Use a provider that is installed, for example local, or leave it out."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("available",)

    def __init__(self, *, available: Sequence[str] | None = None) -> None:
        super().__init__({"available": available})


class QuotaExceeded(QuotaError):
    """No more sandboxes can be made now."""

    code: ClassVar[str] = "quota_exceeded"
    error_code: ClassVar[str] = "E2002"
    message: ClassVar[str] = "No more sandboxes can be made now."
    suggestion: ClassVar[str] = "Kill a sandbox that is no longer needed, or wait, then try again."
    http_status: ClassVar[int] = 429
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class ResultTooLarge(LimitError):
    """The call was carried out, but its result is larger than a message may be (8 MiB)."""

    code: ClassVar[str] = "result_too_large"
    error_code: ClassVar[str] = "E4011"
    message: ClassVar[str] = "The call was carried out, but its result is larger than a message may be (8 MiB)."
    suggestion: ClassVar[str] = "Ask for less in one call, for example a part of the file with head, tail or split."
    http_status: ClassVar[int] = 413
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class SandboxExpired(NotFound):
    """The lifetime of the sandbox is over."""

    code: ClassVar[str] = "sandbox_expired"
    error_code: ClassVar[str] = "E2010"
    message: ClassVar[str] = "The lifetime of the sandbox is over."
    suggestion: ClassVar[str] = "Call create_sandbox to make a new one."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("ended_at",)

    def __init__(self, *, ended_at: str | None = None) -> None:
        super().__init__({"ended_at": ended_at})


class SandboxIncompatible(Conflict):
    """The sandbox was made by another version of Cloche, or its record is damaged; it was left as it is."""

    code: ClassVar[str] = "sandbox_incompatible"
    error_code: ClassVar[str] = "E2016"
    message: ClassVar[str] = (
        "The sandbox was made by another version of Cloche, or its record is damaged; it was left as it is."
    )
    suggestion: ClassVar[str] = "Use it with the version that made it, or make a new one. It ends by its own timeout."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("problem",)

    def __init__(self, *, problem: RecordProblem) -> None:
        super().__init__({"problem": problem})


class SandboxLost(NotFound):
    """The sandbox ended while it was in use."""

    code: ClassVar[str] = "sandbox_lost"
    error_code: ClassVar[str] = "E2011"
    message: ClassVar[str] = "The sandbox ended while it was in use."
    suggestion: ClassVar[str] = "Its files are gone. Call create_sandbox to make a new one."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class SandboxNotFound(NotFound):
    """The sandbox does not exist or is not visible to this account."""

    code: ClassVar[str] = "sandbox_not_found"
    error_code: ClassVar[str] = "E2009"
    message: ClassVar[str] = "The sandbox does not exist or is not visible to this account."
    suggestion: ClassVar[str] = "Check the id. list_sandboxes shows visible ones."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class SandboxPaused(Conflict):
    """The sandbox is paused. Nothing was done, and it stays paused."""

    code: ClassVar[str] = "sandbox_paused"
    error_code: ClassVar[str] = "E2013"
    message: ClassVar[str] = "The sandbox is paused. Nothing was done, and it stays paused."
    suggestion: ClassVar[str] = "Call again to resume it and go on. Or leave it paused. In Python, resume() resumes it."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class SandboxStartFailed(ExecutionError):
    """The sandbox did not become ready, and was removed."""

    code: ClassVar[str] = "sandbox_start_failed"
    error_code: ClassVar[str] = "E2024"
    message: ClassVar[str] = "The sandbox did not become ready, and was removed."
    suggestion: ClassVar[str] = (
        "Try again, or with another image; abx docker doctor tells what is wrong with the engine."
    )
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "safe"
    detail_keys: ClassVar[tuple[str, ...]] = ("reason",)

    def __init__(self, *, reason: StartProblem) -> None:
        super().__init__({"reason": reason})


class SandboxStateConflict(Conflict):
    """The sandbox is in a state in which this cannot be done."""

    code: ClassVar[str] = "sandbox_state_conflict"
    error_code: ClassVar[str] = "E2025"
    message: ClassVar[str] = "The sandbox is in a state in which this cannot be done."
    suggestion: ClassVar[str] = "Wait until its state is ready or failed, then call again."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ("state",)

    def __init__(self, *, state: ManagedState) -> None:
        super().__init__({"state": state})


class SquashInFlight(Conflict):
    """A squash of these layers runs already."""

    code: ClassVar[str] = "squash_in_flight"
    error_code: ClassVar[str] = "E3017"
    message: ClassVar[str] = "A squash of these layers runs already."
    suggestion: ClassVar[str] = "Wait until it has ended, then try again."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class TaskLimit(QuotaError):
    """The sandbox runs as many tasks as it may."""

    code: ClassVar[str] = "task_limit"
    error_code: ClassVar[str] = "E3012"
    message: ClassVar[str] = "The sandbox runs as many tasks as it may."
    suggestion: ClassVar[str] = "Wait for one to end, or cancel one, then try again."
    http_status: ClassVar[int] = 429
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class TaskNotFound(NotFound):
    """There is no such task in that sandbox."""

    code: ClassVar[str] = "task_not_found"
    error_code: ClassVar[str] = "E3011"
    message: ClassVar[str] = "There is no such task in that sandbox."
    suggestion: ClassVar[str] = "Pass the sandbox_id and task_id that the start of the task returned."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class TemplateNotFound(NotFound):
    """The template does not exist or is not visible to this account."""

    code: ClassVar[str] = "template_not_found"
    error_code: ClassVar[str] = "E2001"
    message: ClassVar[str] = "The template does not exist or is not visible to this account."
    suggestion: ClassVar[str] = "Leave the template out to use the default of the server."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("http_status",)

    def __init__(self, *, http_status: int | None = None) -> None:
        super().__init__({"http_status": http_status})


class TransferConflict(Conflict):
    """The part does not fit what the transfer has so far."""

    code: ClassVar[str] = "transfer_conflict"
    error_code: ClassVar[str] = "E4013"
    message: ClassVar[str] = "The part does not fit what the transfer has so far."
    suggestion: ClassVar[str] = "Go on at the offset in details, with the same path and mode."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("offset",)

    def __init__(self, *, offset: int | None = None) -> None:
        super().__init__({"offset": offset})


class TransferNotFound(NotFound):
    """There is no such transfer in that sandbox: it never began, it is complete, or it was idle for too long."""

    code: ClassVar[str] = "transfer_not_found"
    error_code: ClassVar[str] = "E4012"
    message: ClassVar[str] = (
        "There is no such transfer in that sandbox: it never began, it is complete, or it was idle for too long."
    )
    suggestion: ClassVar[str] = "Begin the upload again at offset 0, without transfer_id."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class UnknownTool(NotFound):
    """There is no such tool."""

    code: ClassVar[str] = "unknown_tool"
    error_code: ClassVar[str] = "E1005"
    message: ClassVar[str] = "There is no such tool."
    suggestion: ClassVar[str] = "Call tools/list to see the tools."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class UnsupportedLanguage(Unsupported):
    """This template cannot run that language."""

    code: ClassVar[str] = "unsupported_language"
    error_code: ClassVar[str] = "E3005"
    message: ClassVar[str] = "This template cannot run that language."
    suggestion: ClassVar[str] = "Use one of the languages that are available."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "unimplemented"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("available",)

    def __init__(self, *, available: Sequence[Language]) -> None:
        super().__init__({"available": available})


class UnsupportedLimit(Unsupported):
    """This provider cannot enforce that limit here, so it refuses the option."""

    code: ClassVar[str] = "unsupported_limit"
    error_code: ClassVar[str] = "E2004"
    message: ClassVar[str] = "This provider cannot enforce that limit here, so it refuses the option."
    suggestion: ClassVar[str] = "Leave the option out, or use a provider that can enforce it."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "unimplemented"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("limit",)

    def __init__(self, *, limit: LimitResource) -> None:
        super().__init__({"limit": limit})


class UnsupportedOperation(Unsupported):
    """This provider does not support that operation."""

    code: ClassVar[str] = "unsupported_operation"
    error_code: ClassVar[str] = "E3004"
    message: ClassVar[str] = "This provider does not support that operation."
    suggestion: ClassVar[str] = "Use a provider that supports it."
    http_status: ClassVar[int] = 501
    connect_code: ClassVar[str] = "unimplemented"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ("capability",)

    def __init__(self, *, capability: Capability | None = None) -> None:
        super().__init__({"capability": capability})


class UnsupportedUser(Unsupported):
    """This sandbox has no such user."""

    code: ClassVar[str] = "unsupported_user"
    error_code: ClassVar[str] = "E3008"
    message: ClassVar[str] = "This sandbox has no such user."
    suggestion: ClassVar[str] = "Leave the user out to run as the default user."
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "unimplemented"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class WorkspaceConflict(Conflict):
    """Somebody else changed the same files of the workspace at the same time, again and again; nothing was written."""

    code: ClassVar[str] = "workspace_conflict"
    error_code: ClassVar[str] = "E4014"
    message: ClassVar[str] = (
        "Somebody else changed the same files of the workspace at the same time, again and again; nothing was written."
    )
    suggestion: ClassVar[str] = "Read the file again, and write it when the others are done."
    http_status: ClassVar[int] = 409
    connect_code: ClassVar[str] = "failed_precondition"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class WorkspaceNotAllowed(InvalidInput):
    """The workspace directory is not below a directory that this manager may use."""

    code: ClassVar[str] = "workspace_not_allowed"
    error_code: ClassVar[str] = "E2022"
    message: ClassVar[str] = "The workspace directory is not below a directory that this manager may use."
    suggestion: ClassVar[str] = (
        "Ask the operator to name its parent in ABX_DOCKER_WORKSPACE_ROOTS. list_workspace_directories shows what can be used."
    )
    http_status: ClassVar[int] = 403
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class WorkspaceNotFound(InvalidInput):
    """The workspace directory does not exist, is no directory, or cannot be read."""

    code: ClassVar[str] = "workspace_not_found"
    error_code: ClassVar[str] = "E2021"
    message: ClassVar[str] = "The workspace directory does not exist, is no directory, or cannot be read."
    suggestion: ClassVar[str] = (
        "Pass the absolute path of a directory of this machine. list_workspace_directories shows what can be used."
    )
    http_status: ClassVar[int] = 400
    connect_code: ClassVar[str] = "invalid_argument"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class WorkspaceSessionLimit(QuotaError):
    """The sandbox has as many workspace sessions as it may have."""

    code: ClassVar[str] = "workspace_session_limit"
    error_code: ClassVar[str] = "E3015"
    message: ClassVar[str] = "The sandbox has as many workspace sessions as it may have."
    suggestion: ClassVar[str] = "Publish or destroy one, then try again."
    http_status: ClassVar[int] = 429
    connect_code: ClassVar[str] = "resource_exhausted"
    retry: ClassVar[Retry] = "backoff"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


class WorkspaceSessionNotFound(NotFound):
    """There is no such workspace session in the sandbox."""

    code: ClassVar[str] = "workspace_session_not_found"
    error_code: ClassVar[str] = "E3014"
    message: ClassVar[str] = "There is no such workspace session in the sandbox."
    suggestion: ClassVar[str] = "List the sessions of the sandbox, or create one."
    http_status: ClassVar[int] = 404
    connect_code: ClassVar[str] = "not_found"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__({})


ERRORS: Final[Mapping[str, type[ClocheError]]] = {
    "access_key_refused": AccessKeyRefused,
    "audit_unavailable": AuditUnavailable,
    "authentication_failed": AuthenticationFailed,
    "backend_unavailable": BackendUnavailable,
    "base_unusable": BaseUnusable,
    "busy": Busy,
    "command_failed_to_start": CommandFailedToStart,
    "command_timeout": CommandTimeout,
    "configuration_invalid": ConfigurationInvalid,
    "context_limit": ContextLimit,
    "context_not_found": ContextNotFound,
    "cwd_not_found": CwdNotFound,
    "default_sandbox_lost": DefaultSandboxLost,
    "destination_not_allowed": DestinationNotAllowed,
    "destination_unusable": DestinationUnusable,
    "destroy_failed": DestroyFailed,
    "disk_full": DiskFull,
    "export_rejected": ExportRejected,
    "file_exists": FileExists,
    "file_is_directory": FileIsDirectory,
    "file_not_directory": FileNotDirectory,
    "file_not_found": FileNotFound,
    "file_permission_denied": FilePermissionDenied,
    "file_special": FileSpecial,
    "file_too_large": FileTooLarge,
    "idempotency_conflict": IdempotencyConflict,
    "image_not_found": ImageNotFound,
    "internal_error": InternalError,
    "interpreter_failed": InterpreterFailed,
    "invalid_argument": InvalidArgument,
    "layer_store_damaged": LayerStoreDamaged,
    "no_default_sandbox": NoDefaultSandbox,
    "not_text": NotText,
    "output_mismatch": OutputMismatch,
    "overlay_failed": OverlayFailed,
    "path_invalid": PathInvalid,
    "permission_denied": PermissionDenied,
    "process_not_found": ProcessNotFound,
    "provider_failed": ProviderFailed,
    "provider_mismatch": ProviderMismatch,
    "provider_timeout": ProviderTimeout,
    "provider_unavailable": ProviderUnavailable,
    "provider_unknown": ProviderUnknown,
    "quota_exceeded": QuotaExceeded,
    "result_too_large": ResultTooLarge,
    "sandbox_expired": SandboxExpired,
    "sandbox_incompatible": SandboxIncompatible,
    "sandbox_lost": SandboxLost,
    "sandbox_not_found": SandboxNotFound,
    "sandbox_paused": SandboxPaused,
    "sandbox_start_failed": SandboxStartFailed,
    "sandbox_state_conflict": SandboxStateConflict,
    "squash_in_flight": SquashInFlight,
    "task_limit": TaskLimit,
    "task_not_found": TaskNotFound,
    "template_not_found": TemplateNotFound,
    "transfer_conflict": TransferConflict,
    "transfer_not_found": TransferNotFound,
    "unknown_tool": UnknownTool,
    "unsupported_language": UnsupportedLanguage,
    "unsupported_limit": UnsupportedLimit,
    "unsupported_operation": UnsupportedOperation,
    "unsupported_user": UnsupportedUser,
    "workspace_conflict": WorkspaceConflict,
    "workspace_not_allowed": WorkspaceNotAllowed,
    "workspace_not_found": WorkspaceNotFound,
    "workspace_session_limit": WorkspaceSessionLimit,
    "workspace_session_not_found": WorkspaceSessionNotFound,
}

CAUSES: Final[Mapping[BackendCause, tuple[str, str]]] = {
    "architecture_unsupported": (
        "The local provider needs an x86_64 or aarch64 processor.",
        "Use another provider, or another machine.",
    ),
    "capabilities_undroppable": (
        "Capabilities cannot be dropped.",
        "Run as an ordinary user, or as root with CAP_SETPCAP.",
    ),
    "docker_access_denied": (
        "This user may not use the Docker Engine.",
        "Use rootless Docker, or let this user into the group of the engine's socket.",
    ),
    "docker_context_unknown": (
        "The Docker context does not exist or cannot be read.",
        "Choose one that docker context ls shows, or set DOCKER_HOST.",
    ),
    "docker_elsewhere": (
        "The Docker Engine is reached over the network, and sees none of the files of this machine.",
        "Use an engine of this machine: a unix socket in DOCKER_HOST, or the context default.",
    ),
    "docker_image_unset": (
        "No image is named for Docker sandboxes.",
        "Set ABX_DOCKER_IMAGE to an image that the engine has (docker images lists them), or pass its name as template.",
    ),
    "docker_manager_missing": (
        "The manager of Docker sandboxes is not installed.",
        "Install cloche with its extra docker: pip install with the name cloche[docker].",
    ),
    "docker_mounts_blocked": (
        "Mounting inside the container is refused, most likely by the AppArmor profile docker-default.",
        "Load an AppArmor profile that allows mount, and name it in ABX_DOCKER_APPARMOR.",
    ),
    "docker_network_blocked": (
        "The Docker Engine cannot set up its network.",
        "Install iptables where the engine runs and load its kernel modules, then restart the engine.",
    ),
    "docker_networks_used_up": (
        "The Docker Engine has no addresses left for another network.",
        "Remove networks that nobody uses with docker network prune, or set default-address-pools in the engine's daemon.json.",
    ),
    "docker_not_linux": (
        "The Docker Engine runs no Linux containers.",
        "Switch it to Linux containers, or use another engine.",
    ),
    "docker_not_running": (
        "No Docker Engine answers where it was looked for.",
        "Start the engine, or point DOCKER_HOST or the Docker context to one that runs; abx docker doctor shows where it looks.",
    ),
    "docker_other_processor": (
        "The Docker Engine or the image is for another processor than this Python.",
        "Use an engine and an image of this machine's processor.",
    ),
    "docker_other_user": (
        "The Docker Engine acts as root for an ordinary user, so files of the shared base would not belong to the sandbox.",
        "Use rootless Docker, or run the manager as root.",
    ),
    "docker_python_unusable": (
        "The Python of this process cannot be delivered into a container.",
        "Run the manager with a CPython that is linked dynamically and has its standard library as files.",
    ),
    "docker_state_unusable": (
        "The manager's state or cache directory cannot be used.",
        "Point ABX_DOCKER_STATE_DIR and ABX_DOCKER_CACHE_DIR to directories of your own on a local disk.",
    ),
    "docker_tls_refused": (
        "The TLS connection to the Docker Engine failed.",
        "Check DOCKER_CERT_PATH, DOCKER_TLS_VERIFY and the certificates of the context.",
    ),
    "docker_too_old": ("The Docker Engine speaks an API older than 1.41.", "Use Docker Engine 20.10 or newer."),
    "egress_failed": (
        "The filter of outgoing connections did not start, or did not block what it must block.",
        "Look at the log of this process; without a network allowlist the sandbox needs no filter.",
    ),
    "id_range_unavailable": (
        "A range of user ids cannot be mapped.",
        "Run as root with CAP_SETUID and CAP_SETGID, or as an ordinary user.",
    ),
    "idmapped_mounts_unavailable": (
        "The file system does not support mounts with mapped ids.",
        "Keep the state directory on ext4, xfs or btrfs with a kernel of 5.19 and up, or run as an ordinary user.",
    ),
    "kernel_too_old": ("The kernel is older than 5.11.", "Use a newer kernel, or another provider."),
    "mounts_blocked": (
        "Mounting inside a new namespace is blocked.",
        "Run outside the container, or start the container so that mount is allowed.",
    ),
    "namespaces_blocked": (
        "Making namespaces is blocked, as it is in most containers.",
        "Run outside the container, or start the container so that unshare and mount are allowed.",
    ),
    "no_new_privileges_unavailable": ("The no_new_privs flag cannot be set.", "Use another kernel."),
    "overlay_unavailable": (
        "The overlay file system cannot be mounted.",
        "Load the overlay module, or use a kernel that allows overlay in a user namespace (5.11 and up).",
    ),
    "platform_unsupported": (
        "The local provider needs Linux.",
        "Use another provider, or run it on a Linux machine or in a Linux virtual machine.",
    ),
    "proc_mount_blocked": (
        "A new /proc cannot be mounted.",
        "Start the container without masked paths below /proc, or run outside it.",
    ),
    "python_unreadable": (
        "The Python of this process cannot be read by the user of the sandbox.",
        "Use a Python that this user may read, for example the one of the system.",
    ),
    "runtime_directory_unusable": (
        "The runtime directory cannot be used for sockets.",
        "Point ABX_LOCAL_RUNTIME_DIR to a short path to a directory of your own.",
    ),
    "seccomp_unavailable": ("The kernel has no seccomp filters.", "Use a kernel with CONFIG_SECCOMP_FILTER."),
    "state_directory_unusable": (
        "The state directory cannot be written or lies on an unsuitable file system.",
        "Point ABX_LOCAL_STATE_DIR to a directory of your own on a local disk.",
    ),
    "user_namespaces_disabled": (
        "User namespaces are switched off.",
        "Set user.max_user_namespaces to a number above 0 with sysctl, and kernel.unprivileged_userns_clone to 1 where it exists.",
    ),
    "user_namespaces_restricted": (
        "A security module does not let this program use user namespaces.",
        "Set kernel.apparmor_restrict_unprivileged_userns to 0 with sysctl, or load an AppArmor profile that allows userns for this Python.",
    ),
    "zygote_failed": (
        "The starter process of the sandboxes ended or did not answer.",
        "Run abx doctor; then look at the log of this process.",
    ),
}

__all__ = [
    "AccessDenied",
    "AccessKeyRefused",
    "AuditUnavailable",
    "AuthenticationError",
    "AuthenticationFailed",
    "BackendUnavailable",
    "BaseUnusable",
    "Busy",
    "CAUSES",
    "CommandFailedToStart",
    "CommandTimeout",
    "ConfigurationError",
    "ConfigurationInvalid",
    "Conflict",
    "ContextLimit",
    "ContextNotFound",
    "CwdNotFound",
    "DefaultSandboxLost",
    "DestinationNotAllowed",
    "DestinationUnusable",
    "DestroyFailed",
    "DiskFull",
    "ERRORS",
    "ExecutionError",
    "ExportRejected",
    "FileExists",
    "FileIsDirectory",
    "FileNotDirectory",
    "FileNotFound",
    "FilePermissionDenied",
    "FileSpecial",
    "FileTooLarge",
    "IdempotencyConflict",
    "ImageNotFound",
    "Internal",
    "InternalError",
    "InterpreterFailed",
    "InvalidArgument",
    "InvalidInput",
    "LayerStoreDamaged",
    "LimitError",
    "NoDefaultSandbox",
    "NotFound",
    "NotText",
    "OutputMismatch",
    "OverlayFailed",
    "PathInvalid",
    "PermissionDenied",
    "ProcessNotFound",
    "ProviderFailed",
    "ProviderMismatch",
    "ProviderTimeout",
    "ProviderUnavailable",
    "ProviderUnknown",
    "QuotaError",
    "QuotaExceeded",
    "ResultTooLarge",
    "SandboxExpired",
    "SandboxIncompatible",
    "SandboxLost",
    "SandboxNotFound",
    "SandboxPaused",
    "SandboxStartFailed",
    "SandboxStateConflict",
    "SquashInFlight",
    "TaskLimit",
    "TaskNotFound",
    "TemplateNotFound",
    "TimeoutFailure",
    "TransferConflict",
    "TransferNotFound",
    "Unavailable",
    "UnknownTool",
    "Unreachable",
    "Unsupported",
    "UnsupportedLanguage",
    "UnsupportedLimit",
    "UnsupportedOperation",
    "UnsupportedUser",
    "WorkspaceConflict",
    "WorkspaceNotAllowed",
    "WorkspaceNotFound",
    "WorkspaceSessionLimit",
    "WorkspaceSessionNotFound",
]
