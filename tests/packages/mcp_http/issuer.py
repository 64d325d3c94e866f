"""A real authorization server of this process: metadata and keys over HTTP, and tokens that it signs."""

import base64
import json
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote_plus

import anyio
import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from cloche_mcp_http.server import bind

AUDIENCE = "https://mcp.example.org/mcp"
CLIENT, SECRET = "resource-server", "s3cret:of/it"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def new_key(algorithm: str) -> PrivateKey:
    """A key to sign with: RS… or ES256."""
    if algorithm.startswith("ES"):
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Issuer:
    """What it tells, and how often it was asked."""

    url: str = ""
    keys: dict[str, tuple[str, PrivateKey]] = field(default_factory=dict[str, tuple[str, PrivateKey]])
    """Algorithm and key by key id."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list[str])
    silent: bool = False
    opaque: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What it says of opaque tokens, to a client with the right secret."""

    def add_key(self, key_id: str, algorithm: str) -> None:
        """Sign with one more key from now on."""
        self.keys[key_id] = (algorithm, new_key(algorithm))

    def token(self, key_id: str = "one", *, headers: dict[str, Any] | None = None, **changes: Any) -> str:
        """An access token; a claim that is None is left out."""
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "alice",
            "client_id": "app",
            "scope": "sandboxes other",
            "exp": int(time.time()) + 300,
            **changes,
        }
        algorithm, key = self.keys[key_id]
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, key, algorithm, headers={"kid": key_id, "typ": "at+jwt", **(headers or {})})

    async def answer(self, request: Request) -> Response:
        """What is asked over HTTP."""
        path = request.url.path
        self.asked.append(path)
        if self.silent:
            return Response(status_code=503)
        if path == "/introspect":
            return await self._introspect(request)
        if path == "/moved":
            return RedirectResponse("/keys")
        if path == "/keys":
            return JSONResponse({"keys": [public(key_id, *found) for key_id, found in self.keys.items()]})
        if path == "/.well-known/oauth-authorization-server" and self.metadata:
            return JSONResponse(self.metadata)
        return Response(status_code=404)

    async def _introspect(self, request: Request) -> Response:
        expected = base64.b64encode(f"{CLIENT}:{quote_plus(SECRET)}".encode()).decode()
        if request.method != "POST" or request.headers.get("Authorization") != f"Basic {expected}":
            return Response(status_code=401)
        (token,) = parse_qs((await request.body()).decode())["token"]
        return JSONResponse(self.opaque.get(token, {"active": False}))


def public(key_id: str, algorithm: str, key: PrivateKey) -> dict[str, Any]:
    """The public half, as issuers publish it."""
    if isinstance(key, rsa.RSAPrivateKey):
        shown = RSAAlgorithm.to_jwk(key.public_key())
    else:
        shown = ECAlgorithm.to_jwk(key.public_key())
    return {**json.loads(shown), "kid": key_id, "alg": algorithm, "use": "sig"}


@asynccontextmanager
async def issuer() -> AsyncGenerator[Issuer]:
    """An issuer with one RSA key, `one`, that listens until the block ends."""
    made = Issuer()
    listener = bind("127.0.0.1", 0, guarded=True)
    made.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    made.metadata = {"issuer": made.url, "jwks_uri": f"{made.url}/keys"}
    made.add_key("one", "RS256")
    app = Starlette(routes=[Route("/{path:path}", made.answer, methods=["GET", "POST"])])
    server = _Quiet(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
    with listener:
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await server.serve(sockets=[listener])

            tasks.start_soon(serve)
            try:
                yield made
            finally:
                server.should_exit = True


class _Quiet(uvicorn.Server):
    """Leaves the signals of the process alone."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
