"""Names of schemas/common. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.enums import BASE_PROBLEM_VALUES as BASE_PROBLEM_VALUES
    from cloche_contract._gen.enums import CAPABILITY_VALUES as CAPABILITY_VALUES
    from cloche_contract._gen.enums import CHANGE_VALUES as CHANGE_VALUES
    from cloche_contract._gen.enums import CHANGED_PART_VALUES as CHANGED_PART_VALUES
    from cloche_contract._gen.enums import ENTRY_KIND_VALUES as ENTRY_KIND_VALUES
    from cloche_contract._gen.enums import EVENT_KIND_VALUES as EVENT_KIND_VALUES
    from cloche_contract._gen.enums import EXPORT_FORMAT_VALUES as EXPORT_FORMAT_VALUES
    from cloche_contract._gen.enums import EXPORT_PROBLEM_VALUES as EXPORT_PROBLEM_VALUES
    from cloche_contract._gen.enums import FILE_TYPE_VALUES as FILE_TYPE_VALUES
    from cloche_contract._gen.enums import INCOMPLETE_REASON_VALUES as INCOMPLETE_REASON_VALUES
    from cloche_contract._gen.enums import LANGUAGE_VALUES as LANGUAGE_VALUES
    from cloche_contract._gen.enums import LEFTOVER_KIND_VALUES as LEFTOVER_KIND_VALUES
    from cloche_contract._gen.enums import LIMIT_RESOURCE_VALUES as LIMIT_RESOURCE_VALUES
    from cloche_contract._gen.enums import MANAGED_STATE_VALUES as MANAGED_STATE_VALUES
    from cloche_contract._gen.enums import RECORD_PROBLEM_VALUES as RECORD_PROBLEM_VALUES
    from cloche_contract._gen.enums import RESULT_TYPE_VALUES as RESULT_TYPE_VALUES
    from cloche_contract._gen.enums import START_PROBLEM_VALUES as START_PROBLEM_VALUES
    from cloche_contract._gen.enums import STOP_REASON_VALUES as STOP_REASON_VALUES
    from cloche_contract._gen.enums import TASK_STATE_VALUES as TASK_STATE_VALUES
    from cloche_contract._gen.enums import TEXT_ENCODING_VALUES as TEXT_ENCODING_VALUES
    from cloche_contract._gen.enums import WRITE_ENCODING_VALUES as WRITE_ENCODING_VALUES
    from cloche_contract._gen.enums import BaseProblem as BaseProblem
    from cloche_contract._gen.enums import Capability as Capability
    from cloche_contract._gen.enums import Change as Change
    from cloche_contract._gen.enums import ChangedPart as ChangedPart
    from cloche_contract._gen.enums import EntryKind as EntryKind
    from cloche_contract._gen.enums import EventKind as EventKind
    from cloche_contract._gen.enums import ExportFormat as ExportFormat
    from cloche_contract._gen.enums import ExportProblem as ExportProblem
    from cloche_contract._gen.enums import FileType as FileType
    from cloche_contract._gen.enums import IncompleteReason as IncompleteReason
    from cloche_contract._gen.enums import Language as Language
    from cloche_contract._gen.enums import LeftoverKind as LeftoverKind
    from cloche_contract._gen.enums import LimitResource as LimitResource
    from cloche_contract._gen.enums import ManagedState as ManagedState
    from cloche_contract._gen.enums import RecordProblem as RecordProblem
    from cloche_contract._gen.enums import ResultType as ResultType
    from cloche_contract._gen.enums import StartProblem as StartProblem
    from cloche_contract._gen.enums import StopReason as StopReason
    from cloche_contract._gen.enums import TaskState as TaskState
    from cloche_contract._gen.enums import TextEncoding as TextEncoding
    from cloche_contract._gen.enums import WriteEncoding as WriteEncoding
    from cloche_contract._gen.models.common.docker import ManagedEndpoint as ManagedEndpoint
    from cloche_contract._gen.models.common.docker import ManagedSandbox as ManagedSandbox
    from cloche_contract._gen.models.common.docker import SessionDisposition as SessionDisposition
    from cloche_contract._gen.models.common.docker import SessionFault as SessionFault
    from cloche_contract._gen.models.common.docker import SharedBase as SharedBase
    from cloche_contract._gen.models.common.docker import SquashedLayers as SquashedLayers
    from cloche_contract._gen.models.common.docker import WorkspaceDirectory as WorkspaceDirectory
    from cloche_contract._gen.models.common.execution import CodeError as CodeError
    from cloche_contract._gen.models.common.execution import ResultItem as ResultItem
    from cloche_contract._gen.models.common.files import FileEntry as FileEntry
    from cloche_contract._gen.models.common.files import OutputFile as OutputFile
    from cloche_contract._gen.models.common.network import Denial as Denial

_WHERE = {
    "BASE_PROBLEM_VALUES": "cloche_contract._gen.enums",
    "BaseProblem": "cloche_contract._gen.enums",
    "CAPABILITY_VALUES": "cloche_contract._gen.enums",
    "CHANGED_PART_VALUES": "cloche_contract._gen.enums",
    "CHANGE_VALUES": "cloche_contract._gen.enums",
    "Capability": "cloche_contract._gen.enums",
    "Change": "cloche_contract._gen.enums",
    "ChangedPart": "cloche_contract._gen.enums",
    "CodeError": "cloche_contract._gen.models.common.execution",
    "Denial": "cloche_contract._gen.models.common.network",
    "ENTRY_KIND_VALUES": "cloche_contract._gen.enums",
    "EVENT_KIND_VALUES": "cloche_contract._gen.enums",
    "EXPORT_FORMAT_VALUES": "cloche_contract._gen.enums",
    "EXPORT_PROBLEM_VALUES": "cloche_contract._gen.enums",
    "EntryKind": "cloche_contract._gen.enums",
    "EventKind": "cloche_contract._gen.enums",
    "ExportFormat": "cloche_contract._gen.enums",
    "ExportProblem": "cloche_contract._gen.enums",
    "FILE_TYPE_VALUES": "cloche_contract._gen.enums",
    "FileEntry": "cloche_contract._gen.models.common.files",
    "FileType": "cloche_contract._gen.enums",
    "INCOMPLETE_REASON_VALUES": "cloche_contract._gen.enums",
    "IncompleteReason": "cloche_contract._gen.enums",
    "LANGUAGE_VALUES": "cloche_contract._gen.enums",
    "LEFTOVER_KIND_VALUES": "cloche_contract._gen.enums",
    "LIMIT_RESOURCE_VALUES": "cloche_contract._gen.enums",
    "Language": "cloche_contract._gen.enums",
    "LeftoverKind": "cloche_contract._gen.enums",
    "LimitResource": "cloche_contract._gen.enums",
    "MANAGED_STATE_VALUES": "cloche_contract._gen.enums",
    "ManagedEndpoint": "cloche_contract._gen.models.common.docker",
    "ManagedSandbox": "cloche_contract._gen.models.common.docker",
    "ManagedState": "cloche_contract._gen.enums",
    "OutputFile": "cloche_contract._gen.models.common.files",
    "RECORD_PROBLEM_VALUES": "cloche_contract._gen.enums",
    "RESULT_TYPE_VALUES": "cloche_contract._gen.enums",
    "RecordProblem": "cloche_contract._gen.enums",
    "ResultItem": "cloche_contract._gen.models.common.execution",
    "ResultType": "cloche_contract._gen.enums",
    "START_PROBLEM_VALUES": "cloche_contract._gen.enums",
    "STOP_REASON_VALUES": "cloche_contract._gen.enums",
    "SessionDisposition": "cloche_contract._gen.models.common.docker",
    "SessionFault": "cloche_contract._gen.models.common.docker",
    "SharedBase": "cloche_contract._gen.models.common.docker",
    "SquashedLayers": "cloche_contract._gen.models.common.docker",
    "StartProblem": "cloche_contract._gen.enums",
    "StopReason": "cloche_contract._gen.enums",
    "TASK_STATE_VALUES": "cloche_contract._gen.enums",
    "TEXT_ENCODING_VALUES": "cloche_contract._gen.enums",
    "TaskState": "cloche_contract._gen.enums",
    "TextEncoding": "cloche_contract._gen.enums",
    "WRITE_ENCODING_VALUES": "cloche_contract._gen.enums",
    "WorkspaceDirectory": "cloche_contract._gen.models.common.docker",
    "WriteEncoding": "cloche_contract._gen.enums",
}

__all__ = [
    "BASE_PROBLEM_VALUES",
    "BaseProblem",
    "CAPABILITY_VALUES",
    "CHANGED_PART_VALUES",
    "CHANGE_VALUES",
    "Capability",
    "Change",
    "ChangedPart",
    "CodeError",
    "Denial",
    "ENTRY_KIND_VALUES",
    "EVENT_KIND_VALUES",
    "EXPORT_FORMAT_VALUES",
    "EXPORT_PROBLEM_VALUES",
    "EntryKind",
    "EventKind",
    "ExportFormat",
    "ExportProblem",
    "FILE_TYPE_VALUES",
    "FileEntry",
    "FileType",
    "INCOMPLETE_REASON_VALUES",
    "IncompleteReason",
    "LANGUAGE_VALUES",
    "LEFTOVER_KIND_VALUES",
    "LIMIT_RESOURCE_VALUES",
    "Language",
    "LeftoverKind",
    "LimitResource",
    "MANAGED_STATE_VALUES",
    "ManagedEndpoint",
    "ManagedSandbox",
    "ManagedState",
    "OutputFile",
    "RECORD_PROBLEM_VALUES",
    "RESULT_TYPE_VALUES",
    "RecordProblem",
    "ResultItem",
    "ResultType",
    "START_PROBLEM_VALUES",
    "STOP_REASON_VALUES",
    "SessionDisposition",
    "SessionFault",
    "SharedBase",
    "SquashedLayers",
    "StartProblem",
    "StopReason",
    "TASK_STATE_VALUES",
    "TEXT_ENCODING_VALUES",
    "TaskState",
    "TextEncoding",
    "WRITE_ENCODING_VALUES",
    "WorkspaceDirectory",
    "WriteEncoding",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
