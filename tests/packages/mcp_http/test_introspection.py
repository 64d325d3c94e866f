"""Opaque access tokens: a real authorization server is asked about each, and fails closed.

Source: issue 5, item 4; RFC 7662.
"""

import time
from typing import Any

import pytest

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http import introspection, introspection_oauth, oauth_of
from cloche_mcp_http.asgi import app_from_environ
from cloche_mcp_http.oauth import OAuth
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.issuer import AUDIENCE, CLIENT, SECRET, Issuer, issuer
from tests.packages.mcp_http.served import HELLO, modern, raw, served

pytestmark = pytest.mark.anyio

URL = "https://login.example.org/introspect"
ENVIRON = {
    "ABX_MCP_OAUTH_ISSUER": "https://login.example.org",
    "ABX_MCP_OAUTH_AUDIENCE": AUDIENCE,
    "ABX_MCP_OAUTH_INTROSPECTION_URL": URL,
    "ABX_MCP_OAUTH_CLIENT_ID": CLIENT,
    "ABX_MCP_OAUTH_CLIENT_SECRET": SECRET,
}


def oauth_at(login: Issuer, secret: str = SECRET) -> OAuth:
    return introspection_oauth(
        login.url,
        AUDIENCE,
        introspection_url=f"{login.url}/introspect",
        client_id=CLIENT,
        client_secret=secret,
        required_scopes=["sandboxes"],
    )


def grant(login: Issuer, **changes: Any) -> dict[str, Any]:
    said = {"active": True, "iss": login.url, "aud": AUDIENCE, "sub": "alice", "scope": "sandboxes", **changes}
    return {name: value for name, value in said.items() if value is not None}


async def test_an_opaque_token_is_asked_about_once_and_its_subject_is_the_principal(
    scripted_plane: ScriptedPlane,
) -> None:
    """hive#2762: two users of one client find nothing of each other."""
    async with issuer() as login:
        login.opaque = {
            "a": grant(login, client_id="app", exp=int(time.time()) + 300),
            "b": grant(login, client_id="app", sub="bob", aud=["https://other.example.org", AUDIENCE], iss=None),
        }
        async with (
            served(oauth=oauth_at(login)) as server,
            raw(server, "a") as alice,
            modern(server, "b") as bob,
        ):
            made = await alice.value("create_sandbox")
            assert await bob.error("get_sandbox", {"sandbox_id": made["sandbox_id"]}) == "sandbox_not_found"
            await alice.value("get_sandbox")
        assert login.asked == ["/introspect", "/introspect"]


async def test_every_other_opaque_token_is_refused(scripted_plane: ScriptedPlane) -> None:
    async with issuer() as login:
        login.opaque = {
            "not active": grant(login, active=False),
            "active as a word": grant(login, active="true"),
            "another audience": grant(login, aud="https://other.example.org/mcp"),
            "no audience": grant(login, aud=None),
            "another issuer": grant(login, iss="https://evil.example"),
            "expired": grant(login, exp=int(time.time()) - 60),
            "nobody": grant(login, sub=None),
            "bound to a key": grant(login, token_type="DPoP"),
            "no scope": grant(login, scope="other"),
        }
        login.opaque = {name.replace(" ", "-"): said for name, said in login.opaque.items()}
        async with served(oauth=oauth_at(login)) as server:
            for token in (*login.opaque, "unknown"):
                async with raw(server, token, greet=False) as client:
                    answer = await client.post(HELLO)
                    assert answer.status_code == (403 if token == "no-scope" else 401), token
                    assert "resource_metadata=" in answer.headers["www-authenticate"]
                    assert token not in answer.text


async def test_m13_nobody_is_let_in_while_the_authorization_server_does_not_tell(
    scripted_plane: ScriptedPlane,
) -> None:
    """security.md, "guard error": silence, and a secret that it does not take, are 503 and never 200."""
    async with issuer() as login:
        login.opaque = {"a": grant(login)}
        for secret, silent in ((SECRET, True), ("wrong", False)):
            login.silent = silent
            async with (
                served(oauth=oauth_at(login, secret)) as server,
                raw(server, "a", greet=False) as client,
            ):
                answer = await client.post(HELLO)
                assert (answer.status_code, "retry-after" in answer.headers) == (503, True)


async def test_a_revoked_token_is_refused_once_the_answer_about_it_is_old(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introspection, "FRESH_S", 0.0)
    async with issuer() as login:
        login.opaque = {"a": grant(login)}
        async with served(oauth=oauth_at(login)) as server, raw(server, "a") as client:
            await client.value("create_sandbox")
            login.opaque.clear()
            assert (await client.post(client.calling("get_sandbox"))).status_code == 401


async def test_what_is_remembered_of_tokens_has_a_bound(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introspection, "MOST_KEPT", 2)
    async with issuer() as login:
        verifier = oauth_at(login).verifier
        for token in ("a", "b", "c", "c", "a"):
            assert await verifier.verify_token(token) is None
        assert len(login.asked) == 4


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ABX_MCP_OAUTH_CLIENT_SECRET": " "}, "ABX_MCP_OAUTH_CLIENT_SECRET"),
        ({"ABX_MCP_OAUTH_CLIENT_ID": None}, "ABX_MCP_OAUTH_CLIENT_ID"),
        ({"ABX_MCP_OAUTH_INTROSPECTION_URL": "http://login.example.org/i"}, "ABX_MCP_OAUTH_INTROSPECTION_URL"),
        ({"ABX_MCP_OAUTH_JWKS_URL": URL}, "ABX_MCP_OAUTH_JWKS_URL, ABX_MCP_OAUTH_INTROSPECTION_URL"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(change: dict[str, str | None], named: str) -> None:
    environ = {name: value for name, value in {**ENVIRON, **change}.items() if value is not None}
    with pytest.raises(ConfigurationInvalid) as refused:
        app_from_environ(environ)
    assert refused.value.details["setting"] == named


def test_the_environment_configures_it_and_no_secret_is_shown() -> None:
    oauth = oauth_of(ENVIRON)
    assert oauth is not None
    assert isinstance(oauth.verifier, introspection.IntrospectionVerifier)
    assert SECRET not in repr(introspection.Introspection(URL, CLIENT, SECRET))
