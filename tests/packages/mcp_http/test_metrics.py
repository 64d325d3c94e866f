"""What an operator can watch, and what is not in it.

Source: the issue, item 1; ADR 25.
"""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import Raw, modern, raw, served

pytestmark = pytest.mark.anyio


async def numbers(client: Raw, url: str) -> dict[str, float]:
    answer = await client.http.get(url, headers=client.headers)
    assert answer.status_code == 200
    families = list(text_string_to_metric_families(answer.text))
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in families
        for sample in family.samples
    }


async def test_calls_sessions_and_answers_are_counted(scripted_plane: ScriptedPlane) -> None:
    async with served() as server, raw(server) as client, modern(server) as other:
        await client.value("create_sandbox")
        await other.value("create_sandbox")
        assert await other.error("get_sandbox") == "no_default_sandbox"
        await client.post(client.calling("my-secret-tool"))
        await client.post(b"{")
        found = await numbers(client, f"{server.origin}/metrics")
        assert found["cloche_mcp_calls_total['create_sandbox', 'ok']"] == 2
        assert found["cloche_mcp_calls_total['error', 'get_sandbox']"] == 1
        assert found["cloche_mcp_calls_total['unfinished', 'unknown']"] == 1
        assert found["cloche_mcp_call_seconds_count['create_sandbox']"] == 2
        assert found["cloche_mcp_sessions[]"] == 1
        assert found["cloche_mcp_calls_running[]"] == 0
        assert found["cloche_mcp_answers_total['400']"] == 1
        assert not any("my-secret-tool" in name for name in found)
        await client.bye()
        assert (await numbers(client, f"{server.origin}/metrics"))["cloche_mcp_sessions[]"] == 0


async def test_numbers_need_a_token_where_calls_do(scripted_plane: ScriptedPlane) -> None:
    async with served(auth_token="a-token") as server, raw(server, "a-token", greet=False) as client:
        assert (await client.http.get(f"{server.origin}/metrics")).status_code == 401
        await numbers(client, f"{server.origin}/metrics")
        strange = {**client.headers, "Host": "evil.example"}
        assert (await client.http.get(f"{server.origin}/metrics", headers=strange)).status_code == 421


async def test_two_servers_in_one_process_do_not_share_numbers(scripted_plane: ScriptedPlane) -> None:
    async with served() as one, served() as two, raw(one) as client, raw(two, greet=False) as other:
        await client.value("list_sandboxes")
        assert "cloche_mcp_sessions[]" in await numbers(other, f"{two.origin}/metrics")
        assert (await numbers(other, f"{two.origin}/metrics"))["cloche_mcp_sessions[]"] == 0
