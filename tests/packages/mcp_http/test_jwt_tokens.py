"""Access tokens of a real authorization server: whose are accepted, and what happens when it does not answer.

Source: the issue, item 4; RFC 8414, RFC 8725, RFC 9068.
"""

import time
from collections.abc import Callable
from typing import Any

import anyio
import jwt
import pytest

from cloche_contract.errors import ConfigurationInvalid
from cloche_mcp_http import issuer_keys, jwt_oauth, oauth_of
from cloche_mcp_http.asgi import app_from_environ
from cloche_testkit.plane import ScriptedPlane
from tests.packages.mcp_http.issuer import AUDIENCE, Issuer, issuer, new_key
from tests.packages.mcp_http.served import HELLO, modern, raw, served

pytestmark = pytest.mark.anyio


async def test_tokens_of_the_issuer_are_accepted_and_its_subjects_are_principals(scripted_plane: ScriptedPlane) -> None:
    """hive#2762: two users of one client find nothing of each other; metadata and keys are fetched once."""
    async with issuer() as login:
        login.add_key("two", "ES256")
        async with (
            served(oauth=jwt_oauth(login.url, AUDIENCE, required_scopes=["sandboxes"])) as server,
            raw(server, login.token()) as alice,
            modern(server, login.token("two", sub="bob", aud=["https://other.example.org", AUDIENCE])) as bob,
        ):
            made = await alice.value("create_sandbox")
            assert await bob.error("get_sandbox", {"sandbox_id": made["sandbox_id"]}) == "sandbox_not_found"
            renewed = login.token(exp=int(time.time()) + 900)
            alice.headers["Authorization"] = f"Bearer {renewed}"
            await alice.value("get_sandbox")
        assert login.asked == ["/.well-known/oauth-authorization-server", "/keys"]


def forged(login: Issuer) -> str:
    """Signed by somebody else, under the id of a good key."""
    stranger = Issuer(url=login.url, keys={"one": ("RS256", new_key("RS256"))})
    return stranger.token()


def with_public_key_as_secret(login: Issuer) -> str:
    """RFC 8725, 2.1: a public key taken for a shared secret."""
    return jwt.encode({"iss": login.url, "aud": AUDIENCE, "sub": "a", "exp": 2**31}, "k" * 64, "HS256", {"kid": "one"})


def unsigned(login: Issuer) -> str:
    return jwt.encode({"iss": login.url, "aud": AUDIENCE, "sub": "a", "exp": 2**31}, "", "none", {"kid": "one"})


def cut(login: Issuer) -> str:
    return login.token()[:-8]


ODD: dict[str, Callable[[Issuer], str]] = {
    "another issuer": lambda login: login.token(iss="https://evil.example"),
    "another audience": lambda login: login.token(aud="https://other.example.org/mcp"),
    "no audience": lambda login: login.token(aud=None),
    "expired": lambda login: login.token(exp=int(time.time()) - 60),
    "no end": lambda login: login.token(exp=None),
    "not yet": lambda login: login.token(nbf=int(time.time()) + 600),
    "nobody": lambda login: login.token(sub=None, client_id=None),
    "an id token by its type": lambda login: login.token(headers={"typ": "id+jwt"}),
    "an unknown key": lambda login: Issuer(login.url, {"x": ("RS256", new_key("RS256"))}).token("x"),
    "forged": forged,
    "a secret": with_public_key_as_secret,
    "unsigned": unsigned,
    "cut": cut,
    "no token": lambda login: "opaque",
}


async def test_every_other_token_is_refused_and_the_client_told_where_to_ask(scripted_plane: ScriptedPlane) -> None:
    async with (
        issuer() as login,
        served(oauth=jwt_oauth(login.url, AUDIENCE)) as server,
        raw(server, greet=False) as client,
    ):
        for name, token_of in ODD.items():
            answer = await client.post(HELLO, Authorization=f"Bearer {token_of(login)}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, -32001), name
            assert ".well-known/oauth-protected-resource/mcp" in answer.headers["www-authenticate"]
        weak = await client.post(HELLO, Authorization=f"Bearer {login.token(scope=None, scp=['other'])}")
        assert weak.status_code == 200


async def test_a_scope_is_read_from_either_claim(scripted_plane: ScriptedPlane) -> None:
    async with (
        issuer() as login,
        served(oauth=jwt_oauth(login.url, AUDIENCE, required_scopes=["sandboxes"])) as server,
        raw(server, greet=False) as client,
    ):
        cases: list[tuple[dict[str, Any], int]] = [
            ({"scope": "sandboxes"}, 200),
            ({"scope": None, "scp": ["sandboxes"]}, 200),
            ({"scope": "sandboxes-not"}, 403),
            ({"scope": None}, 403),
        ]
        for claims, status in cases:
            answer = await client.post(HELLO, Authorization=f"Bearer {login.token(**claims)}")
            assert answer.status_code == status, claims


async def test_a_new_key_is_found_and_unknown_ones_do_not_flood_the_issuer(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        issuer() as login,
        served(oauth=jwt_oauth(login.url, AUDIENCE)) as server,
        raw(server, login.token(), greet=False) as client,
    ):
        assert (await client.post(HELLO)).status_code == 200
        asked = len(login.asked)
        strange = Issuer(login.url, {"x": ("RS256", new_key("RS256"))}).token("x")
        async with anyio.create_task_group() as many:
            for _ in range(20):
                many.start_soon(lambda: client.post(HELLO, Authorization=f"Bearer {strange}"))
        assert len(login.asked) == asked
        monkeypatch.setattr(issuer_keys, "ASK_AGAIN_S", 0.0)
        login.add_key("next", "RS256")
        assert (await client.post(HELLO, Authorization=f"Bearer {login.token('next')}")).status_code == 200


async def test_an_issuer_that_does_not_answer_lets_nobody_in_and_says_so(
    scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail closed; keys that are known go on being good for a while."""
    async with (
        issuer() as login,
        served(oauth=jwt_oauth(login.url, AUDIENCE)) as server,
        raw(server, login.token(), greet=False) as client,
    ):
        login.silent = True
        answer = await client.post(HELLO)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        monkeypatch.setattr(issuer_keys, "ASK_AGAIN_S", 0.0)
        login.silent = False
        assert (await client.post(HELLO)).status_code == 200
        login.silent = True
        monkeypatch.setattr(issuer_keys, "FRESH_S", 0.0)
        assert (await client.post(HELLO)).status_code == 200
        monkeypatch.setattr(issuer_keys, "KEPT_S", 0.0)
        assert (await client.post(HELLO)).status_code == 503


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example", "jwks_uri": "SELF/keys"},
        {"issuer": "SELF", "jwks_uri": "http://evil.example/keys"},
        {"issuer": "SELF", "jwks_uri": "SELF/moved"},
        {"issuer": "SELF"},
    ],
    ids=["of another issuer", "keys without TLS", "keys moved", "no keys"],
)
async def test_metadata_that_points_elsewhere_is_not_believed(
    metadata: dict[str, str], scripted_plane: ScriptedPlane
) -> None:
    """RFC 8414, 3.3."""
    async with (
        issuer() as login,
        served(oauth=jwt_oauth(login.url, AUDIENCE)) as server,
        raw(server, login.token(), greet=False) as client,
    ):
        login.metadata = {name: value.replace("SELF", login.url) for name, value in metadata.items()}
        assert (await client.post(HELLO)).status_code == 503


async def test_keys_at_a_url_of_their_own_need_no_metadata(scripted_plane: ScriptedPlane) -> None:
    async with issuer() as login:
        login.metadata = {}
        oauth = jwt_oauth(login.url, "api://cloche", resource_url=AUDIENCE, jwks_url=f"{login.url}/keys")
        async with (
            served(oauth=oauth) as server,
            raw(server, login.token(aud="api://cloche"), greet=False) as client,
        ):
            assert (await client.post(HELLO)).status_code == 200
            assert (await client.post(HELLO, Authorization=f"Bearer {login.token()}")).status_code == 401
        assert login.asked == ["/keys"]


GOOD = {"ABX_MCP_OAUTH_ISSUER": "https://login.example.org", "ABX_MCP_OAUTH_AUDIENCE": AUDIENCE}


@pytest.mark.parametrize(
    "wrong",
    [
        {"ABX_MCP_OAUTH_ISSUER": ""},
        {"ABX_MCP_OAUTH_AUDIENCE": " "},
        {"ABX_MCP_OAUTH_ISSUER": "http://login.example.org"},
        {"ABX_MCP_OAUTH_ISSUER": "login.example.org"},
        {"ABX_MCP_OAUTH_AUDIENCE": "api://cloche"},
        {"ABX_MCP_OAUTH_JWKS_URL": "ftp://login.example.org/keys"},
        {"ABX_MCP_OAUTH_SCOPES": ""},
        {"ABX_MCP_AUTH_TOKEN": "a-token"},
    ],
    ids=str,
)
def test_a_setting_that_protects_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """Checklist 301, for this kind of token: blank, incomplete or unprotected must not mean "nobody needs one"."""
    app_from_environ(GOOD)
    with pytest.raises(ConfigurationInvalid):
        app_from_environ({**GOOD, **wrong})
    with pytest.raises(ConfigurationInvalid):
        oauth_of({"ABX_MCP_OAUTH_SCOPES": "sandboxes"})
