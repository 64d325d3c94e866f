"""An agent of a platform, with tasks and uploads in parts as the SDK does them over it: for the conformance suite."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from cloche_contract import agent
from cloche_contract.errors import ClocheError
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import ConnectRequest, SandboxProvider
from cloche_sdk import Doors, load_settings
from cloche_sdk.data_plane import AgentChannel
from cloche_sdk.emulated_tasks import EmulatedTasks
from cloche_sdk.emulated_uploads import Part, upload_part
from cloche_sdk.link import SandboxLink
from cloche_sdk.providers import Reference
from cloche_testkit.agent_client import AgentRefused, TaskOutcome, TestAgent, task_outcome

T = TypeVar("T")


class EmulatingAgent(TestAgent):
    """What the suite asks of an agent, answered by the agent or by the SDK."""

    __test__ = False

    def __init__(self, provider: SandboxProvider, record: SandboxRecord) -> None:
        assert record.agent is not None
        super().__init__(record.agent)
        doors = Doors(settings=load_settings({}), environ={})
        self.link = SandboxLink(Reference("cloud", record.sandbox_id), provider, record, doors)
        self._channel = AgentChannel(self.link)
        self._tasks = EmulatedTasks(self._channel)

    async def start_task(self, task_id: str, command: str, *, timeout_s: int = 60, **more: object) -> Mapping[str, Any]:
        asked = {"task_id": task_id, "command": command, "timeout": timeout_s, **more}
        request = agent.StartTaskRequest.model_validate(asked)
        return (await _refused(self._tasks.tasks_start(request))).model_dump(mode="json", exclude_unset=True)

    async def read_task(self, task_id: str, **more: object) -> TaskOutcome:
        request = agent.TaskRequest.model_validate({"task_id": task_id, **more})
        return _outcome(await _refused(self._tasks.tasks_get(request)))

    async def cancel_task(self, task_id: str) -> TaskOutcome:
        return _outcome(await _refused(self._tasks.tasks_cancel(agent.TaskRequest(task_id=task_id))))

    async def upload_part(
        self, path: str, data: bytes, *, transfer: str, offset: int = 0, last: bool = True
    ) -> Mapping[str, Any]:
        return await _refused(upload_part(self._channel, Part(transfer, path, offset, last, None, data)))


async def reach(provider: SandboxProvider, sandbox_id: str) -> EmulatingAgent:
    """Connect to a sandbox."""
    return EmulatingAgent(provider, await provider.connect(ConnectRequest(sandbox_id=sandbox_id)))


def _outcome(report: agent.TaskReport) -> TaskOutcome:
    return task_outcome(report.model_dump(mode="json", exclude_unset=True))


async def _refused(call: Awaitable[T]) -> T:
    """The suite knows errors as an agent answers them."""
    try:
        return await call
    except ClocheError as error:
        raise AgentRefused(error.http_status, {"cloche": {"code": error.code}}) from error
