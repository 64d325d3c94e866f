"""Sandboxes come, are seen, and go."""

import re
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from cloche_contract.errors import NotFound, SandboxNotFound, TemplateNotFound
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    GetRequest,
    KillRequest,
    ListRequest,
    ProviderOptions,
    SandboxProvider,
    SetTimeoutRequest,
)
from cloche_testkit.cancellation import cancel_at_each_await
from cloche_testkit.conformance.base import (
    WITHIN_S,
    OpenProvider,
    ProviderSuite,
    agent_of,
    eventually,
    ids_of,
    is_gone,
)

_TOLERANCE = timedelta(seconds=5)
_UNKNOWN = "sb0unknown0unknown0unknown"


class LifecycleConformance(ProviderSuite):
    """create, get, list, set_timeout, kill, connect."""

    # create and get

    async def test_a_new_sandbox_runs_with_the_template_and_lifetime_that_were_asked(
        self, provider: SandboxProvider, template: str
    ) -> None:
        """Seed 000: create_sandbox; fault T23: the returned end is true."""
        asked_at = datetime.now(UTC)
        record = await provider.create(CreateRequest(template=template, timeout=77))
        assert (record.status, record.template) == ("running", template)
        assert record.end_at is not None
        assert abs(_time(record.end_at) - asked_at - timedelta(seconds=77)) < _TOLERANCE

    async def test_ids_are_plain_and_differ(self, provider: SandboxProvider, template: str) -> None:
        """A colon would read as `provider:id`."""
        request = CreateRequest(template=template, timeout=120)
        ids = [(await provider.create(request)).sandbox_id for _ in range(3)]
        assert len(set(ids)) == 3
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", sandbox_id) for sandbox_id in ids)

    async def test_get_tells_what_create_told(self, provider: SandboxProvider, sandbox: SandboxRecord) -> None:
        record = await provider.get(GetRequest(sandbox_id=sandbox.sandbox_id))
        assert record.sandbox_id == sandbox.sandbox_id
        assert (record.status, record.template) == (sandbox.status, sandbox.template)
        # Some platforms tell the times when they are asked, and not at the create: then the end is reckoned.
        assert sandbox.started_at in (None, record.started_at)
        assert abs(_time(record.end_at or "") - _time(sandbox.end_at or "")) < _TOLERANCE

    async def test_an_unknown_template_is_refused_and_leaves_nothing(self, provider: SandboxProvider) -> None:
        with pytest.raises(TemplateNotFound):
            await provider.create(CreateRequest(template="no-such-template-0", timeout=120))
        assert await ids_of(provider) == []

    async def test_the_public_address_carries_neither_token_nor_host_path(self, sandbox: SandboxRecord) -> None:
        """Decision D3."""
        url = sandbox.url or ""
        assert "?" not in url
        assert "@" not in url
        assert sandbox.agent is None or sandbox.agent.access_token.get_secret_value() not in url
        assert sandbox.agent is None or not sandbox.agent.socket_path or sandbox.agent.socket_path not in url

    # list

    async def test_list_shows_the_newest_first(self, provider: SandboxProvider, template: str) -> None:
        request = CreateRequest(template=template, timeout=120)
        made = [(await provider.create(request)).sandbox_id for _ in range(3)]
        assert await ids_of(provider) == made[::-1]

    async def test_pages_of_a_list_hold_each_sandbox_once(self, provider: SandboxProvider, template: str) -> None:
        """Seed 000: increasing offset requests another page."""
        request = CreateRequest(template=template, timeout=120)
        made = {(await provider.create(request)).sandbox_id for _ in range(5)}
        pages = [(await provider.list(ListRequest(limit=2, offset=offset))).sandboxes for offset in (0, 2, 4, 6)]
        assert [len(page) for page in pages] == [2, 2, 1, 0]
        assert {record.sandbox_id for page in pages for record in page} == made

    async def test_list_filters_by_status(self, provider: SandboxProvider, sandbox: SandboxRecord) -> None:
        running = await provider.list(ListRequest(status="running"))
        paused = await provider.list(ListRequest(status="paused"))
        assert [record.sandbox_id for record in running.sandboxes] == [sandbox.sandbox_id]
        assert paused.sandboxes == []

    # kill

    async def test_a_killed_sandbox_is_gone_for_every_operation(
        self, provider: SandboxProvider, sandbox: SandboxRecord
    ) -> None:
        """Seed 000: a foreign, unknown or dead id is "not found"."""
        sandbox_id = sandbox.sandbox_id
        await provider.kill(KillRequest(sandbox_id=sandbox_id))
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=sandbox_id))
        with pytest.raises(SandboxNotFound):
            await provider.connect(ConnectRequest(sandbox_id=sandbox_id))
        with pytest.raises(SandboxNotFound):
            await provider.set_timeout(SetTimeoutRequest(sandbox_id=sandbox_id, timeout=60))
        assert sandbox_id not in await ids_of(provider)

    async def test_killing_twice_says_so_the_second_time(
        self, provider: SandboxProvider, sandbox: SandboxRecord
    ) -> None:
        await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))
        with pytest.raises(SandboxNotFound):
            await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))

    async def test_an_unknown_id_is_not_found_by_any_operation(self, provider: SandboxProvider) -> None:
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=_UNKNOWN))
        with pytest.raises(SandboxNotFound):
            await provider.kill(KillRequest(sandbox_id=_UNKNOWN))
        with pytest.raises(SandboxNotFound):
            await provider.connect(ConnectRequest(sandbox_id=_UNKNOWN))
        with pytest.raises(SandboxNotFound):
            await provider.set_timeout(SetTimeoutRequest(sandbox_id=_UNKNOWN, timeout=60))

    @pytest.mark.parametrize("hostile", ["../../etc", "a/b", ".", "..", "a\0b", "%2e%2e", "*", "é" * 400])
    async def test_an_id_that_is_a_path_or_pattern_is_only_an_unknown_id(
        self, provider: SandboxProvider, sandbox: SandboxRecord, hostile: str
    ) -> None:
        with pytest.raises(SandboxNotFound):
            await provider.get(GetRequest(sandbox_id=hostile))
        with pytest.raises(SandboxNotFound):
            await provider.kill(KillRequest(sandbox_id=hostile))
        assert await ids_of(provider) == [sandbox.sandbox_id]

    # lifetime

    async def test_set_timeout_counts_from_now(self, provider: SandboxProvider, sandbox: SandboxRecord) -> None:
        """Seed 000: lifetime from now, longer or shorter, never added."""
        for lifetime_s in (600, 60):
            asked_at = datetime.now(UTC)
            await provider.set_timeout(SetTimeoutRequest(sandbox_id=sandbox.sandbox_id, timeout=lifetime_s))
            record = await provider.get(GetRequest(sandbox_id=sandbox.sandbox_id))
            assert record.end_at is not None
            assert abs(_time(record.end_at) - asked_at - timedelta(seconds=lifetime_s)) < _TOLERANCE

    async def test_a_sandbox_ends_at_its_deadline(self, provider: SandboxProvider, template: str) -> None:
        record = await provider.create(CreateRequest(template=template, timeout=1))
        agent = await agent_of(provider, record.sandbox_id)
        await eventually(lambda: is_gone(provider, record.sandbox_id), "the sandbox is gone")

        async def silent() -> bool:
            return not await agent.is_healthy()

        await eventually(silent, "its agent is silent")
        with pytest.raises(NotFound):
            await provider.connect(ConnectRequest(sandbox_id=record.sandbox_id))

    # several clients, cancellation, many at once

    async def test_another_client_sees_and_kills_the_sandbox(
        self, provider: SandboxProvider, open_provider: OpenProvider, options: ProviderOptions, sandbox: SandboxRecord
    ) -> None:
        async with open_provider(options) as other:
            assert await ids_of(other) == [sandbox.sandbox_id]
            await other.kill(KillRequest(sandbox_id=sandbox.sandbox_id))
        assert await ids_of(provider) == []

    async def test_closing_a_client_ends_no_sandbox(
        self, provider: SandboxProvider, open_provider: OpenProvider, options: ProviderOptions, template: str
    ) -> None:
        async with open_provider(options) as other:
            made = await other.create(CreateRequest(template=template, timeout=120))
        agent = await agent_of(provider, made.sandbox_id)
        assert await agent.is_healthy()

    async def test_a_create_cancelled_at_any_await_leaves_nothing(
        self, provider: SandboxProvider, template: str
    ) -> None:
        """Fault L2, decision D17."""

        async def nothing_left(number: int) -> None:
            async def empty() -> bool:
                return await ids_of(provider) == []

            await eventually(empty, f"nothing is left of the create that was cancelled at await {number}")

        await cancel_at_each_await(lambda: provider.create(CreateRequest(template=template, timeout=120)), nothing_left)

    async def test_many_creates_and_kills_at_once_do_not_mix(
        self, provider: SandboxProvider, template: str, at_once: int
    ) -> None:
        """Fault L13: concurrent creates."""
        made: list[str] = []

        async def create() -> None:
            made.append((await provider.create(CreateRequest(template=template, timeout=120))).sandbox_id)

        async def kill(sandbox_id: str) -> None:
            await provider.kill(KillRequest(sandbox_id=sandbox_id))

        with anyio.fail_after(WITHIN_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(at_once):
                    tasks.start_soon(create)
            assert sorted(await ids_of(provider)) == sorted(made)
            async with anyio.create_task_group() as tasks:
                for sandbox_id in made[: at_once // 2]:
                    tasks.start_soon(kill, sandbox_id)
        assert sorted(await ids_of(provider)) == sorted(made[at_once // 2 :])


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None, "times carry their zone"
    return moment
