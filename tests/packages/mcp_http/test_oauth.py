"""OAuth 2.1 resource-server mode: whose tokens are accepted, and what a client without one is told.

Source: the issue, item 4; MCP "Authorization"; RFC 6750, 8707, 9728.
"""

from dataclasses import dataclass, field

import pytest
from mcp.server.auth.provider import AccessToken

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http import OAuth, create_mcp_app
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.served import HELLO, modern, raw, served

pytestmark = pytest.mark.anyio

ISSUER = "https://login.example.org"
RESOURCE = "https://mcp.example.org/mcp"


def granted(subject: str = "alice", **changes: object) -> AccessToken:
    grant = {
        "token": "t",
        "client_id": "app",
        "scopes": ["sandboxes"],
        "resource": RESOURCE,
        "subject": subject,
        "claims": {"iss": ISSUER},
        **changes,
    }
    return AccessToken.model_validate(grant)


@dataclass
class Verifier:
    """An authorization server's answers, by token."""

    grants: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.grants.get(token)


def oauth(**grants: AccessToken) -> OAuth:
    return OAuth(Verifier(grants), issuer_url=ISSUER, resource_url=RESOURCE, required_scopes=["sandboxes"])


async def test_a_token_of_the_issuer_for_this_resource_is_accepted(scripted_plane: ScriptedPlane) -> None:
    async with served(oauth=oauth(good=granted())) as server, raw(server, "good") as client:
        await client.value("create_sandbox")
        assert len(scripted_plane.alive) == 1


@pytest.mark.parametrize(
    "grant",
    [
        granted(resource="https://other.example.org/mcp"),
        granted(resource=None),
        granted(claims={"iss": "https://evil.example"}),
        granted(expires_at=1_000_000_000),
    ],
    ids=["another audience", "no audience", "another issuer", "expired"],
)
async def test_a_token_for_somebody_else_is_refused_and_the_client_told_where_to_ask(
    grant: AccessToken, scripted_plane: ScriptedPlane
) -> None:
    async with served(oauth=oauth(odd=grant)) as server, raw(server, "odd", greet=False) as client:
        answer = await client.post(HELLO)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, -32001)
        told = answer.headers["www-authenticate"]
        assert "https://mcp.example.org/.well-known/oauth-protected-resource/mcp" in told
        assert 'error="invalid_token"' in told


async def test_a_token_without_the_scope_is_forbidden(scripted_plane: ScriptedPlane) -> None:
    async with served(oauth=oauth(weak=granted(scopes=[]))) as server, raw(server, "weak", greet=False) as client:
        answer = await client.post(HELLO)
        assert answer.status_code == 403
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
        assert 'scope="sandboxes"' in answer.headers["www-authenticate"]


async def test_the_metadata_of_the_resource_needs_no_token(scripted_plane: ScriptedPlane) -> None:
    """RFC 9728."""
    async with served(oauth=oauth()) as server, raw(server, greet=False) as client:
        found = (await client.http.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp")).json()
        assert found["resource"] == RESOURCE
        assert [url.rstrip("/") for url in found["authorization_servers"]] == [ISSUER]
        assert found["scopes_supported"] == ["sandboxes"]


async def test_m15_subjects_are_principals(scripted_plane: ScriptedPlane) -> None:
    """hive#2762: two users of one client find nothing of each other; a label says nothing about who they are."""
    settings = oauth(a=granted("alice"), b=granted("bob"), a2=granted("alice"))
    async with (
        served(oauth=settings) as server,
        modern(server, "a") as alice,
        modern(server, "b") as bob,
        modern(server, "a2") as again,
    ):
        made = await alice.value("create_sandbox")
        assert await bob.error("get_sandbox", {"sandbox_id": made["sandbox_id"]}) == "sandbox_not_found"
        await again.value("get_sandbox", {"sandbox_id": made["sandbox_id"]})
    (labels,) = [request["metadata"] for request in scripted_plane.script.of("create")]
    assert "alice" not in str(labels)


def test_oauth_and_plain_tokens_exclude_each_other() -> None:
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(oauth=oauth(), auth_token="a-token")
    with pytest.raises(ConfigurationInvalid):
        create_mcp_app(oauth=OAuth(Verifier(), issuer_url="nonsense", resource_url=RESOURCE))
