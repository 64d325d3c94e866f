"""The provider `cloud` against the reference platform, over real HTTP: what it sends, and what it makes of answers.

Source: issue 8; seed-000; systems facts 2.2 to 2.6; agent-protocol part 1.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from cloche_contract.errors import (
    AccessKeyRefused,
    AuthenticationFailed,
    ConfigurationInvalid,
    IdempotencyConflict,
    InvalidArgument,
    ProviderFailed,
    ProviderMismatch,
    ProviderUnknown,
    SandboxNotFound,
    TemplateNotFound,
    UnsupportedOperation,
)
from cloche_contract.provider import CreateRequest, ListRequest
from cloche_sdk import AsyncSandbox, Doors, load_settings
from cloche_sdk._http import AgentHttp
from cloche_sdk.presets import ALICLOUD_EXPRESS, CLOUD, E2B, Preset
from cloche_sdk.providers import ProviderPool
from cloche_testkit.platform import Fault, ReferencePlatform
from tests.packages.sdk.platforms import doors_to, served

pytestmark = pytest.mark.anyio

V1 = frozenset({1})
V2 = frozenset({2})


@pytest.fixture
async def platform() -> AsyncGenerator[ReferencePlatform]:
    async with served() as platform:
        yield platform


async def test_a_create_sends_what_was_asked_for_and_nothing_else(platform: ReferencePlatform) -> None:
    """Source: checklist 54."""
    doors = doors_to(platform)
    await AsyncSandbox.create(timeout=60, doors=doors)
    await AsyncSandbox.create("base", timeout=61, envs={"A": "1"}, cpu=2, memory=512, metadata={"m": "1"}, doors=doors)
    plain, full = [cast("dict[str, Any]", seen.json) for _, seen in platform.seen]
    labels = plain.pop("metadata")
    assert list(labels) == ["cloche.create"]  # what finds it again where the answer is lost
    assert plain == {"templateID": "base", "timeout": 60}
    assert full["metadata"].pop("cloche.create")
    assert full == {
        "templateID": "base",
        "timeout": 61,
        "envVars": {"A": "1"},
        "cpuCount": 2,
        "memoryMB": 512,
        "metadata": {"m": "1"},
    }


@pytest.mark.parametrize("versions", [V1, V2, V1 | V2], ids=["first", "second", "both"])
async def test_each_version_of_the_api_is_spoken(versions: frozenset[int]) -> None:
    """The second is tried first; what a platform does not have is asked for once. Source: agent-protocol, point 1."""
    async with served(versions=versions) as platform:
        doors = doors_to(platform)
        pool = ProviderPool(doors)
        provider = await pool.get("cloud")
        first = await provider.create(CreateRequest(template="base", timeout=60))
        second = await provider.create(CreateRequest(template="base", timeout=60))
        page = await provider.list(ListRequest())
        await pool.aclose()
        assert [record.sandbox_id for record in page.sandboxes] == [second.sandbox_id, first.sandbox_id]
        suffix = "_v1" if versions == V1 else ""
        assert platform.calls == [f"create_sandbox{suffix}"] * 2 + [f"list_sandboxes{suffix}"]


@pytest.mark.parametrize("versions", [V1, V2, V1 | V2], ids=["first", "second", "both"])
async def test_a_template_that_is_not_there_is_told_as_such(versions: frozenset[int]) -> None:
    async with served(versions=versions) as platform:
        with pytest.raises(TemplateNotFound):
            await AsyncSandbox.create("nowhere", doors=doors_to(platform))


@pytest.mark.parametrize("versions", [V1, V2], ids=["first", "second"])
async def test_a_page_of_the_list_starts_at_its_offset(versions: frozenset[int]) -> None:
    """Source: checklist 15 to 20."""
    async with served(versions=versions) as platform:
        platform.page_size = 2
        doors = doors_to(platform)
        made = [(await AsyncSandbox.create(doors=doors)).sandbox_id for _ in range(5)]
        newest_first = made[::-1]
        pages = [await AsyncSandbox.list(limit=2, offset=offset, doors=doors) for offset in (0, 2, 4, 6)]
        assert [[entry.sandbox_id for entry in page] for page in pages] == [
            newest_first[:2],
            newest_first[2:4],
            newest_first[4:],
            [],
        ]
        platform.pause(made[1])
        paused = await AsyncSandbox.list("paused", doors=doors)
        assert [(entry.sandbox_id, entry.status) for entry in paused] == [(made[1], "paused")]
        assert len(await AsyncSandbox.list("running", doors=doors)) == 4


async def test_a_call_by_id_is_one_request_and_leaves_no_connection(platform: ReferencePlatform) -> None:
    """Source: checklist 35 to 37, 68, 73 to 75, 99 to 106."""
    doors = doors_to(platform)
    sandbox_id = (await AsyncSandbox.create(doors=doors)).sandbox_id
    platform.pause(sandbox_id)
    platform.seen.clear()
    info = await AsyncSandbox.get_info_by_id(sandbox_id, sandbox_domain="not.used.invalid", doors=doors)
    assert (info.sandbox_id, info.status, info.template) == (sandbox_id, "paused", "base")
    await AsyncSandbox.set_timeout_by_id(f"cloud:{sandbox_id}", 900, doors=doors)
    assert platform.is_paused(sandbox_id)
    await AsyncSandbox.kill_by_id(sandbox_id, doors=doors)
    assert platform.calls == ["get_sandbox", "set_timeout", "delete_sandbox"]
    assert platform.data_plane == []
    with pytest.raises(SandboxNotFound):
        await AsyncSandbox.get_info_by_id(sandbox_id, doors=doors)
    with anyio.fail_after(10):
        await platform.no_connection()


async def test_the_same_calls_work_without_an_event_loop(platform: ReferencePlatform) -> None:
    """Source: checklist 100."""
    doors = doors_to(platform)
    sandbox_id = (await AsyncSandbox.create(doors=doors)).sandbox_id
    info = await anyio.to_thread.run_sync(lambda: AsyncSandbox.get_info_by_id_sync(sandbox_id, doors=doors))
    assert info.sandbox_id == sandbox_id
    await anyio.to_thread.run_sync(lambda: AsyncSandbox.set_timeout_by_id_sync(sandbox_id, 77, doors=doors))
    await anyio.to_thread.run_sync(lambda: AsyncSandbox.kill_by_id_sync(sandbox_id, doors=doors))
    assert platform.alive == []
    with anyio.fail_after(10):
        await platform.no_connection()


async def test_l4_a_key_makes_a_repeated_create_the_same_sandbox(platform: ReferencePlatform) -> None:
    """Source: decision D20; faults L4."""
    doors = doors_to(platform)
    first = await AsyncSandbox.create(idempotency_key="order-1", doors=doors)
    second = await AsyncSandbox.create(idempotency_key="order-1", doors=doors)
    assert first.sandbox_id == second.sandbox_id
    with pytest.raises(IdempotencyConflict):
        await AsyncSandbox.create(timeout=17, idempotency_key="order-1", doors=doors)
    platform.faults.plan(Fault("create_sandbox", "reset", after=True))
    third = await AsyncSandbox.create(idempotency_key="order-2", doors=doors)
    assert platform.alive == [first.sandbox_id, third.sandbox_id]  # the answer was lost, and asked for again


@pytest.mark.parametrize("preset", [CLOUD, ALICLOUD_EXPRESS, E2B], ids=["cloud", "alicloud", "e2b"])
async def test_the_key_goes_where_the_platform_takes_it(platform: ReferencePlatform, preset: Preset) -> None:
    doors = doors_to(platform, ABX_PROVIDER=preset.provider)
    await AsyncSandbox.list(doors=doors)
    headers = platform.seen[0][1].headers
    sent = {key for key in ("authorization", "x-api-key") if key in headers}
    assert sent == set(preset.key_headers)


async def test_without_a_key_nothing_is_asked(platform: ReferencePlatform) -> None:
    doors = doors_to(platform, ABX_SANDBOX_API_KEY=" ", ABX_PROVIDER="cloud")
    with pytest.raises(AuthenticationFailed):
        await AsyncSandbox.list(doors=doors)
    assert platform.seen == []


async def test_the_report_says_what_is_emulated_and_what_that_cannot_promise(platform: ReferencePlatform) -> None:
    """Source: issue 8, item 4; decision D23."""
    pool = ProviderPool(doors_to(platform))
    report = await (await pool.get("cloud")).probe()
    await pool.aclose()
    told = {ability.capability: ability.limits for ability in report.emulated}
    assert set(told) == {"tasks", "transfers"}
    assert set(told) <= set(report.capabilities)
    assert all(sentence.endswith(".") for sentences in told.values() for sentence in sentences)


@pytest.mark.parametrize("name", ["ALICLOUD_ACCESS_KEY_ID", "ALICLOUD_ACCESS_KEY_SECRET"])
async def test_an_access_key_pair_alone_is_refused_by_name(platform: ReferencePlatform, name: str) -> None:
    """The platform's sandbox API takes an API key. Source: systems facts 2.3, 2.4 (E1003), 2.6."""
    only = {name: "a-secret-key"}
    for provider, error in (("cloud", AccessKeyRefused), ("alicloud-express", AccessKeyRefused), ("e2b", None)):
        doors = doors_to(platform, ABX_SANDBOX_API_KEY="", ABX_PROVIDER=provider, **only)
        with pytest.raises(error or AuthenticationFailed) as caught:
            await AsyncSandbox.list(doors=doors)
        assert "a-secret-key" not in f"{caught.value} {caught.value.hint} {caught.value.details}"
    assert platform.seen == []
    assert await AsyncSandbox.list(doors=doors_to(platform, **only)) == ()  # beside a key it changes nothing


async def test_a_wrong_key_is_told_with_its_status(platform: ReferencePlatform) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        await AsyncSandbox.list(doors=doors_to(platform), api_key="wrong-key")
    assert caught.value.details == {"http_status": 401}


def test_addresses_follow_the_region_unless_one_is_given() -> None:
    """Source: systems facts 2.6."""
    assert ALICLOUD_EXPRESS.addresses({}).base_url == "https://api.cn-hangzhou.e2b.fc.aliyuncs.com"
    away = ALICLOUD_EXPRESS.addresses({"region": "cn-beijing"})
    assert (away.base_url, away.region) == ("https://api.cn-beijing.e2b.fc.aliyuncs.com", "cn-beijing")
    assert ALICLOUD_EXPRESS.addresses({"region": "cn-beijing"}, "us-east-1").region == "us-east-1"
    given = {"sandbox_base_url": "https://sandboxes.example", "region": "cn-beijing"}
    assert ALICLOUD_EXPRESS.addresses(given).base_url == "https://sandboxes.example"
    with pytest.raises(UnsupportedOperation):
        ALICLOUD_EXPRESS.addresses(given, "us-east-1")
    with pytest.raises(UnsupportedOperation):
        E2B.addresses({}, "us-east-1")
    with pytest.raises(ConfigurationInvalid):
        CLOUD.addresses({"sandbox_base_url": "sandboxes.example"})


def test_the_domain_that_is_configured_is_where_the_agent_is_asked() -> None:
    """Source: checklist 159, 324."""
    derived = ALICLOUD_EXPRESS.addresses({})
    assert derived.agent("i1", None) == (
        "https://49983-i1.cn-hangzhou.e2b.fc.aliyuncs.com",
        "https://49999-i1.cn-hangzhou.e2b.fc.aliyuncs.com",
    )
    assert derived.agent("i1", "told.example")[0] == "https://49983-i1.told.example"
    configured = ALICLOUD_EXPRESS.addresses({"sandbox_domain": "mine.example:8443"})
    assert configured.agent("i1", "told.example")[0] == "https://49983-i1.mine.example:8443"
    assert E2B.addresses({}).agent("i1", None) == ("https://sandbox.e2b.app", None)
    assert CLOUD.addresses({"sandbox_url": "http://127.0.0.1:3000/"}).agent("i1", "x.example") == (
        "http://127.0.0.1:3000",
        None,
    )


async def test_a_provider_has_settings_of_its_own(platform: ReferencePlatform) -> None:
    """The general key goes to the default provider; another gets its own. Source: systems facts 2.5, 2.6."""
    environ = {
        "ABX_SANDBOX_API_KEY": "general-key",
        "ABX_SANDBOX_BASE_URL": "http://127.0.0.1:9",
        "ABX_E2B_SANDBOX_API_KEY": platform.api_key,
        "ABX_E2B_SANDBOX_BASE_URL": platform.url,
    }
    doors = Doors(settings=load_settings(environ), environ=environ)
    assert await AsyncSandbox.list(provider="e2b", doors=doors) == ()
    assert platform.seen[0][1].headers["x-api-key"] == platform.api_key
    del environ["ABX_E2B_SANDBOX_API_KEY"]
    bare = Doors(settings=load_settings(environ), environ=environ)
    with pytest.raises(AuthenticationFailed):
        await AsyncSandbox.list(provider="e2b", doors=bare)
    assert len(platform.seen) == 1


async def test_a_contradiction_or_an_unknown_provider_is_refused_before_any_request(
    platform: ReferencePlatform,
) -> None:
    """Source: systems facts 2.5 (E8001, E8002, E8030)."""
    doors = doors_to(platform)
    with pytest.raises(ProviderMismatch):
        await AsyncSandbox.get_info_by_id("e2b:i1", provider="cloud", doors=doors)
    with pytest.raises(ProviderUnknown):
        await AsyncSandbox.get_info_by_id("nobody:i1", doors=doors)
    with pytest.raises(InvalidArgument):
        await AsyncSandbox.get_info_by_id("cloud:", doors=doors)
    assert platform.seen == []


async def test_a_redirect_never_gets_the_key(platform: ReferencePlatform) -> None:
    """Source: security.md, execd#680."""
    async with served() as elsewhere:
        platform.faults.plan(
            Fault("list_sandboxes", "status", status=307, headers={"location": f"{elsewhere.url}/v2/sandboxes"})
        )
        with pytest.raises(ProviderFailed):
            await AsyncSandbox.list(doors=doors_to(platform))
        assert elsewhere.seen == []


async def test_e14_requests_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: faults E14 (E2B#693)."""
    lines: list[bytes] = []

    async def proxy(stream: SocketStream) -> None:
        async with stream:
            lines.append((await stream.receive()).split(b"\r\n")[0])
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy)
        port = listener.extra(SocketAttribute.local_port)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        environ = {"ABX_SANDBOX_API_KEY": "k", "ABX_SANDBOX_BASE_URL": "http://platform.example"}
        assert await AsyncSandbox.list(doors=Doors(settings=load_settings(environ), environ=environ)) == ()
        agent = AgentHttp(socket_path=None, base_url="http://49983-i1.platform.example", headers={})
        async with agent.request("GET", "/health") as reply:
            assert await reply.read(10) == b"[]"
        await agent.aclose()
        tasks.cancel_scope.cancel()
    assert lines == [
        b"GET http://platform.example/v2/sandboxes?limit=100 HTTP/1.1",
        b"GET http://49983-i1.platform.example/health HTTP/1.1",
    ]
