"""What a provider says about itself is what holds; what it cannot do it refuses."""

import pytest

from cloche_contract.errors import IdempotencyConflict, SandboxPaused, UnsupportedLimit, UnsupportedOperation
from cloche_contract.lifecycle import SandboxRecord
from cloche_contract.provider import (
    ConnectRequest,
    CreateRequest,
    DiffRequest,
    GetRequest,
    InspectRequest,
    KillRequest,
    LogsRequest,
    PauseRequest,
    ProbeReport,
    PruneRequest,
    ResumeRequest,
    SandboxProvider,
    SetTimeoutRequest,
    UpdateNetworkRequest,
)
from cloche_testkit.conformance.base import ProviderSuite, agent_of, ids_of

RESOURCES = ("cpu", "memory", "pids", "disk")


class HonestyConformance(ProviderSuite):
    """probe, inspect, and options that are refused instead of ignored (decision D23)."""

    async def test_the_report_names_its_provider_and_is_usable(
        self, provider: SandboxProvider, report: ProbeReport
    ) -> None:
        assert report.provider == provider.id
        assert report.usable
        assert all(check.ok for check in report.checks if check.required)

    async def test_a_failed_check_tells_cause_and_fix(self, report: ProbeReport) -> None:
        assert all(check.cause and check.fix for check in report.checks if not check.ok)

    async def test_every_resource_has_one_line_and_says_what_enforces_it(self, report: ProbeReport) -> None:
        listed = [limit.resource for limit in report.limits]
        # A provider may list more than what a request can ask for.
        assert len(listed) == len(set(listed))
        assert set(listed) >= set(RESOURCES)
        for limit in report.limits:
            assert limit.enforced == bool(limit.enforced_by)
            if limit.resource not in RESOURCES:
                continue
            assert limit.enforced == (f"limits_{limit.resource}" in report.capabilities)

    async def test_a_sandbox_shows_the_limits_that_the_report_promises(
        self, provider: SandboxProvider, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        if "inspect" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))
            return
        shown = await provider.inspect(InspectRequest(sandbox_id=sandbox.sandbox_id))
        assert shown.sandbox_id == sandbox.sandbox_id
        enforced = {limit.resource for limit in shown.limits if limit.enforced}
        assert enforced <= {limit.resource for limit in report.limits if limit.enforced}

    async def test_a_network_allowlist_holds_or_is_refused(
        self, provider: SandboxProvider, template: str, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        """Faults E8, E13: an allowlist that is accepted and opens everything, or nothing."""
        request = CreateRequest(template=template, timeout=120, egress=["example.com"])
        if "egress" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            with pytest.raises(UnsupportedOperation):
                await provider.update_network(UpdateNetworkRequest(sandbox_id=sandbox.sandbox_id, allow=["a.example"]))
            return
        record = await provider.create(request)
        try:
            change = UpdateNetworkRequest(sandbox_id=record.sandbox_id, allow=["a.example"], remove=["example.com"])
            assert (await provider.update_network(change)).rules == ["a.example"]
        finally:
            await provider.kill(KillRequest(sandbox_id=record.sandbox_id))

    async def test_a_listener_is_there_or_refused(
        self, provider: SandboxProvider, template: str, report: ProbeReport
    ) -> None:
        """Decision D3: a sandbox with a listener has an address, which carries no token."""
        request = CreateRequest(template=template, timeout=120, listen=True)
        if "listener" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            assert await ids_of(provider) == []
            return
        made = await provider.create(request)
        record = await provider.get(GetRequest(sandbox_id=made.sandbox_id))
        assert record.url is not None
        assert record.url == made.url
        assert record.url.startswith(("http://", "https://"))
        assert made.agent is not None
        assert made.agent.access_token.get_secret_value() not in record.url

    async def test_a_fresh_sandbox_has_changed_nothing_or_the_question_is_refused(
        self, provider: SandboxProvider, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        """Fault W8: what did the agent change?"""
        request = DiffRequest(sandbox_id=sandbox.sandbox_id)
        if "diff" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.diff(request)
            return
        told = await provider.diff(request)
        assert (told.entries, told.next, told.incomplete) == ([], None, [])
        assert told.not_included

    async def test_a_log_tells_the_end_or_the_question_is_refused(
        self, provider: SandboxProvider, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        request = LogsRequest(sandbox_id=sandbox.sandbox_id)
        if "logs" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.logs(request)
            return
        alive = await provider.logs(request)
        assert (alive.alive, alive.events[0].event) == (True, "started")
        await provider.kill(KillRequest(sandbox_id=sandbox.sandbox_id))
        ended = await provider.logs(request)
        assert (ended.alive, ended.events[-1].event, ended.events[-1].facts["reason"]) == (False, "ended", "killed")

    async def test_a_prune_spares_what_is_alive_or_is_refused(
        self, provider: SandboxProvider, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        if "prune" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.prune(PruneRequest())
            return
        assert (await provider.prune(PruneRequest(dry_run=True))).failed == []
        await provider.prune(PruneRequest())
        assert await ids_of(provider) == [sandbox.sandbox_id]
        assert (await provider.prune(PruneRequest())).removed == []

    async def test_l16_what_is_paused_goes_on_as_it_was_or_is_refused(
        self, provider: SandboxProvider, sandbox: SandboxRecord, report: ProbeReport
    ) -> None:
        """Fault L16. Only a resume, or a connect that may, lets it go on; nothing that asks by its id does."""
        pause, plain = PauseRequest(sandbox_id=sandbox.sandbox_id), GetRequest(sandbox_id=sandbox.sandbox_id)
        if "pause" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.pause(pause)
            with pytest.raises(UnsupportedOperation):
                await provider.resume(ResumeRequest(sandbox_id=sandbox.sandbox_id))
            assert (await provider.get(plain)).status == "running"
            return
        agent = await agent_of(provider, sandbox.sandbox_id)
        written = b""
        for number in range(3):
            await agent.run(f"echo {number} >> kept")
            written += b"%d\n" % number
            await provider.pause(pause)
            with pytest.raises(SandboxPaused):
                await provider.pause(pause)
            with pytest.raises(SandboxPaused):
                await provider.connect(ConnectRequest(sandbox_id=sandbox.sandbox_id, resume=False))
            await provider.set_timeout(SetTimeoutRequest(sandbox_id=sandbox.sandbox_id, timeout=600))
            assert (await provider.get(plain)).status == "paused"
            record = await provider.resume(ResumeRequest(sandbox_id=sandbox.sandbox_id, timeout=600))
            assert (record.sandbox_id, record.status) == (sandbox.sandbox_id, "running")
            agent = await agent_of(provider, sandbox.sandbox_id)
            assert (await agent.run("cat kept")).stdout == written

    @pytest.mark.parametrize("resource", ["cpu", "memory"])
    async def test_a_limit_holds_or_is_refused(
        self, provider: SandboxProvider, template: str, report: ProbeReport, resource: str
    ) -> None:
        """Faults T11, E18: a limit that is accepted and not enforced."""
        request = CreateRequest.model_validate(
            {"template": template, "timeout": 120, resource: 1 if resource == "cpu" else 512}
        )
        if f"limits_{resource}" not in report.capabilities:
            with pytest.raises(UnsupportedLimit) as refusal:
                await provider.create(request)
            assert refusal.value.details["limit"] == resource
            assert await ids_of(provider) == []
            return
        record = await provider.create(request)
        assert (record.cpu_count if resource == "cpu" else record.memory_mb) == (1 if resource == "cpu" else 512)

    async def test_a_region_is_kept_or_refused(
        self, provider: SandboxProvider, template: str, report: ProbeReport
    ) -> None:
        request = CreateRequest(template=template, timeout=120, region="north-1")
        if "region" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            assert await ids_of(provider) == []
            return
        assert (await provider.create(request)).region == "north-1"

    async def test_labels_are_kept_or_refused(
        self, provider: SandboxProvider, template: str, report: ProbeReport
    ) -> None:
        request = CreateRequest(template=template, timeout=120, metadata={"project": "alpha"})
        if "metadata" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            return
        made = await provider.create(request)
        record = await provider.get(GetRequest(sandbox_id=made.sandbox_id))
        assert record.user_metadata == {"project": "alpha"}

    async def test_one_idempotency_key_makes_one_sandbox(
        self, provider: SandboxProvider, template: str, report: ProbeReport
    ) -> None:
        """Fault L4, decision D20."""
        request = CreateRequest(template=template, timeout=120, idempotency_key="key-1")
        if "idempotent_create" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            return
        first = await provider.create(request)
        assert (await provider.create(request)).sandbox_id == first.sandbox_id
        with pytest.raises(IdempotencyConflict):
            await provider.create(CreateRequest(template=template, timeout=121, idempotency_key="key-1"))
        assert await ids_of(provider) == [first.sandbox_id]

    async def test_a_key_of_a_killed_sandbox_makes_a_new_one(
        self, provider: SandboxProvider, template: str, report: ProbeReport
    ) -> None:
        request = CreateRequest(template=template, timeout=120, idempotency_key="key-2")
        if "idempotent_create" not in report.capabilities:
            with pytest.raises(UnsupportedOperation):
                await provider.create(request)
            return
        first = await provider.create(request)
        await provider.kill(KillRequest(sandbox_id=first.sandbox_id))
        assert (await provider.create(request)).sandbox_id != first.sandbox_id
