"""A client of the in-sandbox agent over any transport. Generated from schemas/agent; do not edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from cloche_contract._gen.models.agent.filesystem import (
    EntryResponse,
    ListDirRequest,
    ListDirResponse,
    MakeDirRequest,
    MoveRequest,
    RemoveRequest,
    RemoveResponse,
    StatRequest,
    WatcherCreated,
    WatcherEvents,
    WatcherRequest,
    WatchMessage,
    WatchRequest,
)
from cloche_contract._gen.models.agent.interpreter import Context, CreateContextRequest, ExecuteLine, ExecuteRequest
from cloche_contract._gen.models.agent.layers import (
    CreateSessionRequest,
    LayerStatus,
    LayerStatusRequest,
    ListSessionsRequest,
    ListSessionsResponse,
    PublishResult,
    PublishSessionRequest,
    SessionDestroyed,
    SessionRequest,
    SquashRequest,
    SquashResponse,
    WorkspaceSession,
)
from cloche_contract._gen.models.agent.process import (
    CloseStdinRequest,
    Empty,
    ProcessConnectRequest,
    ProcessListRequest,
    ProcessListResponse,
    ProcessMessage,
    SendInputRequest,
    SendSignalRequest,
    StartRequest,
    UpdateRequest,
)
from cloche_contract._gen.models.agent.tasks import (
    StartTaskRequest,
    TaskListRequest,
    TaskListResponse,
    TaskReport,
    TaskRequest,
    TaskSummary,
)
from cloche_contract.kernel.transport import AgentTransport

_NONE: Mapping[str, str] = {}


class AgentClient:
    """One method per operation. Keys of an answer that this version does not know are ignored."""

    def __init__(self, transport: AgentTransport) -> None:
        self._transport = transport

    async def filesystem_stat(self, request: StatRequest, *, headers: Mapping[str, str] = _NONE) -> EntryResponse:
        """Describe one path."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/Stat", message, headers=headers)
        return EntryResponse.model_validate(answer, extra="ignore")

    async def filesystem_list_dir(
        self, request: ListDirRequest, *, headers: Mapping[str, str] = _NONE
    ) -> ListDirResponse:
        """List a directory."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/ListDir", message, headers=headers)
        return ListDirResponse.model_validate(answer, extra="ignore")

    async def filesystem_make_dir(
        self, request: MakeDirRequest, *, headers: Mapping[str, str] = _NONE
    ) -> EntryResponse:
        """Make a directory, its parents included."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/MakeDir", message, headers=headers)
        return EntryResponse.model_validate(answer, extra="ignore")

    async def filesystem_move(self, request: MoveRequest, *, headers: Mapping[str, str] = _NONE) -> EntryResponse:
        """Rename a file or directory."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/Move", message, headers=headers)
        return EntryResponse.model_validate(answer, extra="ignore")

    async def filesystem_remove(self, request: RemoveRequest, *, headers: Mapping[str, str] = _NONE) -> RemoveResponse:
        """Remove a file, or a directory with all it holds; that there is none is told, and no error."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/Remove", message, headers=headers)
        return RemoveResponse.model_validate(answer, extra="ignore")

    async def filesystem_create_watcher(
        self, request: WatchRequest, *, headers: Mapping[str, str] = _NONE
    ) -> WatcherCreated:
        """Watch a directory, and keep its changes until they are asked for."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/CreateWatcher", message, headers=headers)
        return WatcherCreated.model_validate(answer, extra="ignore")

    async def filesystem_get_watcher_events(
        self, request: WatcherRequest, *, headers: Mapping[str, str] = _NONE
    ) -> WatcherEvents:
        """Return what has changed since the last call."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/GetWatcherEvents", message, headers=headers)
        return WatcherEvents.model_validate(answer, extra="ignore")

    async def filesystem_remove_watcher(self, request: WatcherRequest, *, headers: Mapping[str, str] = _NONE) -> Empty:
        """Watch no more."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/filesystem.Filesystem/RemoveWatcher", message, headers=headers)
        return Empty.model_validate(answer, extra="ignore")

    async def interpreter_create_context(
        self, request: CreateContextRequest, *, headers: Mapping[str, str] = _NONE
    ) -> Context:
        """Make a fresh interpreter."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/contexts", message, headers=headers)
        return Context.model_validate(answer, extra="ignore")

    async def layers_create_session(
        self, request: CreateSessionRequest, *, headers: Mapping[str, str] = _NONE
    ) -> WorkspaceSession:
        """Make a session over the layers in force. The same id again answers with the session that there is."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/CreateSession", message, headers=headers)
        return WorkspaceSession.model_validate(answer, extra="ignore")

    async def layers_list_sessions(
        self, request: ListSessionsRequest, *, headers: Mapping[str, str] = _NONE
    ) -> ListSessionsResponse:
        """Every live session, oldest first."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/ListSessions", message, headers=headers)
        return ListSessionsResponse.model_validate(answer, extra="ignore")

    async def layers_publish_session(
        self, request: PublishSessionRequest, *, headers: Mapping[str, str] = _NONE
    ) -> PublishResult:
        """End a session's commands, make its changes the newest layer and destroy it. A rejected one is kept as it is."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/PublishSession", message, headers=headers)
        return PublishResult.model_validate(answer, extra="ignore")

    async def layers_destroy_session(
        self, request: SessionRequest, *, headers: Mapping[str, str] = _NONE
    ) -> SessionDestroyed:
        """Kill what runs in a session and forget its changes; one that is gone is no error."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/DestroySession", message, headers=headers)
        return SessionDestroyed.model_validate(answer, extra="ignore")

    async def layers_squash(self, request: SquashRequest, *, headers: Mapping[str, str] = _NONE) -> SquashResponse:
        """Make one layer of each run of layers that no live session parts, and move idle sessions onto it."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/Squash", message, headers=headers)
        return SquashResponse.model_validate(answer, extra="ignore")

    async def layers_status(self, request: LayerStatusRequest, *, headers: Mapping[str, str] = _NONE) -> LayerStatus:
        """The layers in force, what is kept for sessions, and the sessions."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Layers/Status", message, headers=headers)
        return LayerStatus.model_validate(answer, extra="ignore")

    async def process_list(
        self, request: ProcessListRequest, *, headers: Mapping[str, str] = _NONE
    ) -> ProcessListResponse:
        """List the processes that were started and still run."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/process.Process/List", message, headers=headers)
        return ProcessListResponse.model_validate(answer, extra="ignore")

    async def process_send_input(self, request: SendInputRequest, *, headers: Mapping[str, str] = _NONE) -> Empty:
        """Write to the standard input of a process."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/process.Process/SendInput", message, headers=headers)
        return Empty.model_validate(answer, extra="ignore")

    async def process_send_signal(self, request: SendSignalRequest, *, headers: Mapping[str, str] = _NONE) -> Empty:
        """Send a signal to a process and all it started; SIGKILL returns when they are gone."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/process.Process/SendSignal", message, headers=headers)
        return Empty.model_validate(answer, extra="ignore")

    async def process_close_stdin(self, request: CloseStdinRequest, *, headers: Mapping[str, str] = _NONE) -> Empty:
        """Close the standard input of a process."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/process.Process/CloseStdin", message, headers=headers)
        return Empty.model_validate(answer, extra="ignore")

    async def process_update(self, request: UpdateRequest, *, headers: Mapping[str, str] = _NONE) -> Empty:
        """Change the size of the terminal of a process."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/process.Process/Update", message, headers=headers)
        return Empty.model_validate(answer, extra="ignore")

    async def tasks_start(self, request: StartTaskRequest, *, headers: Mapping[str, str] = _NONE) -> TaskSummary:
        """Start a task and return at once. The same id and command again answer with the task that there is."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Tasks/Start", message, headers=headers)
        return TaskSummary.model_validate(answer, extra="ignore")

    async def tasks_get(self, request: TaskRequest, *, headers: Mapping[str, str] = _NONE) -> TaskReport:
        """State of a task, and a part of each of its streams."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Tasks/Get", message, headers=headers)
        return TaskReport.model_validate(answer, extra="ignore")

    async def tasks_cancel(self, request: TaskRequest, *, headers: Mapping[str, str] = _NONE) -> TaskReport:
        """End a task and everything that it started, and return when it is gone; one that has ended is left as it is."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Tasks/Cancel", message, headers=headers)
        return TaskReport.model_validate(answer, extra="ignore")

    async def tasks_list(self, request: TaskListRequest, *, headers: Mapping[str, str] = _NONE) -> TaskListResponse:
        """Every task that is still known, oldest first."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._transport.unary("/cloche.Tasks/List", message, headers=headers)
        return TaskListResponse.model_validate(answer, extra="ignore")

    async def filesystem_watch_dir(
        self, request: WatchRequest, *, headers: Mapping[str, str] = _NONE
    ) -> AsyncIterator[WatchMessage]:
        """Follow what changes below a directory. Close the iterator to close the request."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        async for answer in self._transport.stream("/filesystem.Filesystem/WatchDir", message, headers=headers):
            yield WatchMessage.model_validate(answer, extra="ignore")

    async def interpreter_execute(
        self, request: ExecuteRequest, *, headers: Mapping[str, str] = _NONE
    ) -> AsyncIterator[ExecuteLine]:
        """Run code and follow it to its end. Close the iterator to close the request."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        async for answer in self._transport.stream("/execute", message, headers=headers):
            yield ExecuteLine.model_validate(answer, extra="ignore")

    async def process_start(
        self, request: StartRequest, *, headers: Mapping[str, str] = _NONE
    ) -> AsyncIterator[ProcessMessage]:
        """Start a process and follow it to its end. Close the iterator to close the request."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        async for answer in self._transport.stream("/process.Process/Start", message, headers=headers):
            yield ProcessMessage.model_validate(answer, extra="ignore")

    async def process_connect(
        self, request: ProcessConnectRequest, *, headers: Mapping[str, str] = _NONE
    ) -> AsyncIterator[ProcessMessage]:
        """Follow a process that runs, or learn the end of one that has ended. With an offset, kept output comes first. Close the iterator to close the request."""
        message = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        async for answer in self._transport.stream("/process.Process/Connect", message, headers=headers):
            yield ProcessMessage.model_validate(answer, extra="ignore")
