"""Names of schemas/agent. Generated; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloche_contract.kernel.lazy import attribute

if TYPE_CHECKING:
    from cloche_contract._gen.enums import CHANGE_TYPE_VALUES as CHANGE_TYPE_VALUES
    from cloche_contract._gen.enums import ENTRY_TYPE_VALUES as ENTRY_TYPE_VALUES
    from cloche_contract._gen.enums import EXPORT_RECORD_KIND_VALUES as EXPORT_RECORD_KIND_VALUES
    from cloche_contract._gen.enums import LINE_TYPE_VALUES as LINE_TYPE_VALUES
    from cloche_contract._gen.enums import PUBLISH_OUTCOME_VALUES as PUBLISH_OUTCOME_VALUES
    from cloche_contract._gen.enums import REJECT_CLASS_VALUES as REJECT_CLASS_VALUES
    from cloche_contract._gen.enums import REPLACED_LAYERS_VALUES as REPLACED_LAYERS_VALUES
    from cloche_contract._gen.enums import SIGNAL_VALUES as SIGNAL_VALUES
    from cloche_contract._gen.enums import SQUASH_DISPOSITION_VALUES as SQUASH_DISPOSITION_VALUES
    from cloche_contract._gen.enums import ChangeType as ChangeType
    from cloche_contract._gen.enums import EntryType as EntryType
    from cloche_contract._gen.enums import ExportRecordKind as ExportRecordKind
    from cloche_contract._gen.enums import LineType as LineType
    from cloche_contract._gen.enums import PublishOutcome as PublishOutcome
    from cloche_contract._gen.enums import RejectClass as RejectClass
    from cloche_contract._gen.enums import ReplacedLayers as ReplacedLayers
    from cloche_contract._gen.enums import Signal as Signal
    from cloche_contract._gen.enums import SquashDisposition as SquashDisposition
    from cloche_contract._gen.models.agent.filesystem import ChangeEvent as ChangeEvent
    from cloche_contract._gen.models.agent.filesystem import Entry as Entry
    from cloche_contract._gen.models.agent.filesystem import EntryResponse as EntryResponse
    from cloche_contract._gen.models.agent.filesystem import ListDirRequest as ListDirRequest
    from cloche_contract._gen.models.agent.filesystem import ListDirResponse as ListDirResponse
    from cloche_contract._gen.models.agent.filesystem import MakeDirRequest as MakeDirRequest
    from cloche_contract._gen.models.agent.filesystem import MoveRequest as MoveRequest
    from cloche_contract._gen.models.agent.filesystem import RemoveRequest as RemoveRequest
    from cloche_contract._gen.models.agent.filesystem import RemoveResponse as RemoveResponse
    from cloche_contract._gen.models.agent.filesystem import StatRequest as StatRequest
    from cloche_contract._gen.models.agent.filesystem import WatcherCreated as WatcherCreated
    from cloche_contract._gen.models.agent.filesystem import WatcherEvents as WatcherEvents
    from cloche_contract._gen.models.agent.filesystem import WatcherRequest as WatcherRequest
    from cloche_contract._gen.models.agent.filesystem import WatchMessage as WatchMessage
    from cloche_contract._gen.models.agent.filesystem import WatchOverflow as WatchOverflow
    from cloche_contract._gen.models.agent.filesystem import WatchRequest as WatchRequest
    from cloche_contract._gen.models.agent.filesystem import WatchStarted as WatchStarted
    from cloche_contract._gen.models.agent.interpreter import Context as Context
    from cloche_contract._gen.models.agent.interpreter import CreateContextRequest as CreateContextRequest
    from cloche_contract._gen.models.agent.interpreter import ExecuteLine as ExecuteLine
    from cloche_contract._gen.models.agent.interpreter import ExecuteRequest as ExecuteRequest
    from cloche_contract._gen.models.agent.interpreter import Interruption as Interruption
    from cloche_contract._gen.models.agent.interpreter import WrittenFile as WrittenFile
    from cloche_contract._gen.models.agent.layers import CreateSessionRequest as CreateSessionRequest
    from cloche_contract._gen.models.agent.layers import ExportRecord as ExportRecord
    from cloche_contract._gen.models.agent.layers import ExportRequest as ExportRequest
    from cloche_contract._gen.models.agent.layers import FaultySession as FaultySession
    from cloche_contract._gen.models.agent.layers import LayerStatus as LayerStatus
    from cloche_contract._gen.models.agent.layers import LayerStatusRequest as LayerStatusRequest
    from cloche_contract._gen.models.agent.layers import LayerSummary as LayerSummary
    from cloche_contract._gen.models.agent.layers import ListSessionsRequest as ListSessionsRequest
    from cloche_contract._gen.models.agent.layers import ListSessionsResponse as ListSessionsResponse
    from cloche_contract._gen.models.agent.layers import PathConflict as PathConflict
    from cloche_contract._gen.models.agent.layers import PublishResult as PublishResult
    from cloche_contract._gen.models.agent.layers import PublishSessionRequest as PublishSessionRequest
    from cloche_contract._gen.models.agent.layers import SessionDestroyed as SessionDestroyed
    from cloche_contract._gen.models.agent.layers import SessionRequest as SessionRequest
    from cloche_contract._gen.models.agent.layers import SquashedBlock as SquashedBlock
    from cloche_contract._gen.models.agent.layers import SquashRequest as SquashRequest
    from cloche_contract._gen.models.agent.layers import SquashResponse as SquashResponse
    from cloche_contract._gen.models.agent.layers import SweptSession as SweptSession
    from cloche_contract._gen.models.agent.layers import WorkspaceSession as WorkspaceSession
    from cloche_contract._gen.models.agent.process import CloseStdinRequest as CloseStdinRequest
    from cloche_contract._gen.models.agent.process import DataEvent as DataEvent
    from cloche_contract._gen.models.agent.process import DeniedEvent as DeniedEvent
    from cloche_contract._gen.models.agent.process import Empty as Empty
    from cloche_contract._gen.models.agent.process import EndEvent as EndEvent
    from cloche_contract._gen.models.agent.process import InputData as InputData
    from cloche_contract._gen.models.agent.process import InputStart as InputStart
    from cloche_contract._gen.models.agent.process import KeepaliveEvent as KeepaliveEvent
    from cloche_contract._gen.models.agent.process import ProcessConfig as ProcessConfig
    from cloche_contract._gen.models.agent.process import ProcessConnectRequest as ProcessConnectRequest
    from cloche_contract._gen.models.agent.process import ProcessEvent as ProcessEvent
    from cloche_contract._gen.models.agent.process import ProcessInfo as ProcessInfo
    from cloche_contract._gen.models.agent.process import ProcessInput as ProcessInput
    from cloche_contract._gen.models.agent.process import ProcessListRequest as ProcessListRequest
    from cloche_contract._gen.models.agent.process import ProcessListResponse as ProcessListResponse
    from cloche_contract._gen.models.agent.process import ProcessMessage as ProcessMessage
    from cloche_contract._gen.models.agent.process import ProcessSelector as ProcessSelector
    from cloche_contract._gen.models.agent.process import SendInputRequest as SendInputRequest
    from cloche_contract._gen.models.agent.process import SendSignalRequest as SendSignalRequest
    from cloche_contract._gen.models.agent.process import SkippedEvent as SkippedEvent
    from cloche_contract._gen.models.agent.process import StartEvent as StartEvent
    from cloche_contract._gen.models.agent.process import StartRequest as StartRequest
    from cloche_contract._gen.models.agent.process import StreamInputMessage as StreamInputMessage
    from cloche_contract._gen.models.agent.process import Terminal as Terminal
    from cloche_contract._gen.models.agent.process import TerminalSize as TerminalSize
    from cloche_contract._gen.models.agent.process import UpdateRequest as UpdateRequest
    from cloche_contract._gen.models.agent.service import AgentInfo as AgentInfo
    from cloche_contract._gen.models.agent.tasks import StartTaskRequest as StartTaskRequest
    from cloche_contract._gen.models.agent.tasks import TaskListRequest as TaskListRequest
    from cloche_contract._gen.models.agent.tasks import TaskListResponse as TaskListResponse
    from cloche_contract._gen.models.agent.tasks import TaskPage as TaskPage
    from cloche_contract._gen.models.agent.tasks import TaskReport as TaskReport
    from cloche_contract._gen.models.agent.tasks import TaskRequest as TaskRequest
    from cloche_contract._gen.models.agent.tasks import TaskSummary as TaskSummary

_WHERE = {
    "AgentInfo": "cloche_contract._gen.models.agent.service",
    "CHANGE_TYPE_VALUES": "cloche_contract._gen.enums",
    "ChangeEvent": "cloche_contract._gen.models.agent.filesystem",
    "ChangeType": "cloche_contract._gen.enums",
    "CloseStdinRequest": "cloche_contract._gen.models.agent.process",
    "Context": "cloche_contract._gen.models.agent.interpreter",
    "CreateContextRequest": "cloche_contract._gen.models.agent.interpreter",
    "CreateSessionRequest": "cloche_contract._gen.models.agent.layers",
    "DataEvent": "cloche_contract._gen.models.agent.process",
    "DeniedEvent": "cloche_contract._gen.models.agent.process",
    "ENTRY_TYPE_VALUES": "cloche_contract._gen.enums",
    "EXPORT_RECORD_KIND_VALUES": "cloche_contract._gen.enums",
    "Empty": "cloche_contract._gen.models.agent.process",
    "EndEvent": "cloche_contract._gen.models.agent.process",
    "Entry": "cloche_contract._gen.models.agent.filesystem",
    "EntryResponse": "cloche_contract._gen.models.agent.filesystem",
    "EntryType": "cloche_contract._gen.enums",
    "ExecuteLine": "cloche_contract._gen.models.agent.interpreter",
    "ExecuteRequest": "cloche_contract._gen.models.agent.interpreter",
    "ExportRecord": "cloche_contract._gen.models.agent.layers",
    "ExportRecordKind": "cloche_contract._gen.enums",
    "ExportRequest": "cloche_contract._gen.models.agent.layers",
    "FaultySession": "cloche_contract._gen.models.agent.layers",
    "InputData": "cloche_contract._gen.models.agent.process",
    "InputStart": "cloche_contract._gen.models.agent.process",
    "Interruption": "cloche_contract._gen.models.agent.interpreter",
    "KeepaliveEvent": "cloche_contract._gen.models.agent.process",
    "LINE_TYPE_VALUES": "cloche_contract._gen.enums",
    "LayerStatus": "cloche_contract._gen.models.agent.layers",
    "LayerStatusRequest": "cloche_contract._gen.models.agent.layers",
    "LayerSummary": "cloche_contract._gen.models.agent.layers",
    "LineType": "cloche_contract._gen.enums",
    "ListDirRequest": "cloche_contract._gen.models.agent.filesystem",
    "ListDirResponse": "cloche_contract._gen.models.agent.filesystem",
    "ListSessionsRequest": "cloche_contract._gen.models.agent.layers",
    "ListSessionsResponse": "cloche_contract._gen.models.agent.layers",
    "MakeDirRequest": "cloche_contract._gen.models.agent.filesystem",
    "MoveRequest": "cloche_contract._gen.models.agent.filesystem",
    "PUBLISH_OUTCOME_VALUES": "cloche_contract._gen.enums",
    "PathConflict": "cloche_contract._gen.models.agent.layers",
    "ProcessConfig": "cloche_contract._gen.models.agent.process",
    "ProcessConnectRequest": "cloche_contract._gen.models.agent.process",
    "ProcessEvent": "cloche_contract._gen.models.agent.process",
    "ProcessInfo": "cloche_contract._gen.models.agent.process",
    "ProcessInput": "cloche_contract._gen.models.agent.process",
    "ProcessListRequest": "cloche_contract._gen.models.agent.process",
    "ProcessListResponse": "cloche_contract._gen.models.agent.process",
    "ProcessMessage": "cloche_contract._gen.models.agent.process",
    "ProcessSelector": "cloche_contract._gen.models.agent.process",
    "PublishOutcome": "cloche_contract._gen.enums",
    "PublishResult": "cloche_contract._gen.models.agent.layers",
    "PublishSessionRequest": "cloche_contract._gen.models.agent.layers",
    "REJECT_CLASS_VALUES": "cloche_contract._gen.enums",
    "REPLACED_LAYERS_VALUES": "cloche_contract._gen.enums",
    "RejectClass": "cloche_contract._gen.enums",
    "RemoveRequest": "cloche_contract._gen.models.agent.filesystem",
    "RemoveResponse": "cloche_contract._gen.models.agent.filesystem",
    "ReplacedLayers": "cloche_contract._gen.enums",
    "SIGNAL_VALUES": "cloche_contract._gen.enums",
    "SQUASH_DISPOSITION_VALUES": "cloche_contract._gen.enums",
    "SendInputRequest": "cloche_contract._gen.models.agent.process",
    "SendSignalRequest": "cloche_contract._gen.models.agent.process",
    "SessionDestroyed": "cloche_contract._gen.models.agent.layers",
    "SessionRequest": "cloche_contract._gen.models.agent.layers",
    "Signal": "cloche_contract._gen.enums",
    "SkippedEvent": "cloche_contract._gen.models.agent.process",
    "SquashDisposition": "cloche_contract._gen.enums",
    "SquashRequest": "cloche_contract._gen.models.agent.layers",
    "SquashResponse": "cloche_contract._gen.models.agent.layers",
    "SquashedBlock": "cloche_contract._gen.models.agent.layers",
    "StartEvent": "cloche_contract._gen.models.agent.process",
    "StartRequest": "cloche_contract._gen.models.agent.process",
    "StartTaskRequest": "cloche_contract._gen.models.agent.tasks",
    "StatRequest": "cloche_contract._gen.models.agent.filesystem",
    "StreamInputMessage": "cloche_contract._gen.models.agent.process",
    "SweptSession": "cloche_contract._gen.models.agent.layers",
    "TaskListRequest": "cloche_contract._gen.models.agent.tasks",
    "TaskListResponse": "cloche_contract._gen.models.agent.tasks",
    "TaskPage": "cloche_contract._gen.models.agent.tasks",
    "TaskReport": "cloche_contract._gen.models.agent.tasks",
    "TaskRequest": "cloche_contract._gen.models.agent.tasks",
    "TaskSummary": "cloche_contract._gen.models.agent.tasks",
    "Terminal": "cloche_contract._gen.models.agent.process",
    "TerminalSize": "cloche_contract._gen.models.agent.process",
    "UpdateRequest": "cloche_contract._gen.models.agent.process",
    "WatchMessage": "cloche_contract._gen.models.agent.filesystem",
    "WatchOverflow": "cloche_contract._gen.models.agent.filesystem",
    "WatchRequest": "cloche_contract._gen.models.agent.filesystem",
    "WatchStarted": "cloche_contract._gen.models.agent.filesystem",
    "WatcherCreated": "cloche_contract._gen.models.agent.filesystem",
    "WatcherEvents": "cloche_contract._gen.models.agent.filesystem",
    "WatcherRequest": "cloche_contract._gen.models.agent.filesystem",
    "WorkspaceSession": "cloche_contract._gen.models.agent.layers",
    "WrittenFile": "cloche_contract._gen.models.agent.interpreter",
}

__all__ = [
    "AgentInfo",
    "CHANGE_TYPE_VALUES",
    "ChangeEvent",
    "ChangeType",
    "CloseStdinRequest",
    "Context",
    "CreateContextRequest",
    "CreateSessionRequest",
    "DataEvent",
    "DeniedEvent",
    "ENTRY_TYPE_VALUES",
    "EXPORT_RECORD_KIND_VALUES",
    "Empty",
    "EndEvent",
    "Entry",
    "EntryResponse",
    "EntryType",
    "ExecuteLine",
    "ExecuteRequest",
    "ExportRecord",
    "ExportRecordKind",
    "ExportRequest",
    "FaultySession",
    "InputData",
    "InputStart",
    "Interruption",
    "KeepaliveEvent",
    "LINE_TYPE_VALUES",
    "LayerStatus",
    "LayerStatusRequest",
    "LayerSummary",
    "LineType",
    "ListDirRequest",
    "ListDirResponse",
    "ListSessionsRequest",
    "ListSessionsResponse",
    "MakeDirRequest",
    "MoveRequest",
    "PUBLISH_OUTCOME_VALUES",
    "PathConflict",
    "ProcessConfig",
    "ProcessConnectRequest",
    "ProcessEvent",
    "ProcessInfo",
    "ProcessInput",
    "ProcessListRequest",
    "ProcessListResponse",
    "ProcessMessage",
    "ProcessSelector",
    "PublishOutcome",
    "PublishResult",
    "PublishSessionRequest",
    "REJECT_CLASS_VALUES",
    "REPLACED_LAYERS_VALUES",
    "RejectClass",
    "RemoveRequest",
    "RemoveResponse",
    "ReplacedLayers",
    "SIGNAL_VALUES",
    "SQUASH_DISPOSITION_VALUES",
    "SendInputRequest",
    "SendSignalRequest",
    "SessionDestroyed",
    "SessionRequest",
    "Signal",
    "SkippedEvent",
    "SquashDisposition",
    "SquashRequest",
    "SquashResponse",
    "SquashedBlock",
    "StartEvent",
    "StartRequest",
    "StartTaskRequest",
    "StatRequest",
    "StreamInputMessage",
    "SweptSession",
    "TaskListRequest",
    "TaskListResponse",
    "TaskPage",
    "TaskReport",
    "TaskRequest",
    "TaskSummary",
    "Terminal",
    "TerminalSize",
    "UpdateRequest",
    "WatchMessage",
    "WatchOverflow",
    "WatchRequest",
    "WatchStarted",
    "WatcherCreated",
    "WatcherEvents",
    "WatcherRequest",
    "WorkspaceSession",
    "WrittenFile",
]


def __getattr__(name: str) -> object:
    return attribute(__name__, _WHERE, name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
