"""The data plane of a platform that runs an agent of its own: what E2B's envd answers, and nothing more.

The real agent stands behind it. What this project adds to the protocol is taken out of requests and answers: paths,
headers, parameters, fields, codes of the error catalogue, and output from before a client came.

Source: agent-protocol, parts 2 and 3.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import urlencode

from anyio.abc import ByteStream

from cloche_contract.lifecycle import AgentEndpoint
from cloche_contract.wire import connect
from cloche_testkit._http import ConnectionCut, Response, request
from cloche_testkit.platform.wire import Seen, answer, chunk, raw_answer, stream_head

_RPC: Final = ("/process.Process/", "/filesystem.Filesystem/")
_STREAMS: Final = frozenset({"/process.Process/Start", "/process.Process/Connect", "/filesystem.Filesystem/WatchDir"})
_PLAIN: Final = frozenset({"/health", "/files", "/metrics", "/envs", "/execute", "/contexts"})
_HEADERS: Final = (
    "accept-encoding",
    "authorization",
    "connect-protocol-version",
    "connect-timeout-ms",
    "content-type",
    "e2b-sandbox-port",
    "keepalive-ping-interval",
    "range",
    "x-access-token",
)
_METADATA: Final = "x-metadata-"
_PARAMETERS: Final = frozenset({"path", "username", "signature", "signature_expiration"})
_SIGNALS: Final = frozenset({"SIGNAL_SIGKILL", "SIGNAL_SIGTERM"})
_ASKED: Final[Mapping[str, frozenset[str]]] = {
    "/process.Process/Start": frozenset({"process", "pty", "tag", "stdin"}),
    "/process.Process/Connect": frozenset({"process"}),
    "/filesystem.Filesystem/ListDir": frozenset({"path", "depth"}),
    "/execute": frozenset({"code", "context_id", "language", "env_vars"}),
}
_TOLD: Final = frozenset({"start", "data", "keepalive", "end", "filesystem"})
_LAST: Final = {"connection": "close"}
_END: Final = frozenset({"exitCode", "exited", "status", "error"})


async def answer_as_their_agent(seen: Seen, client: ByteStream, endpoint: AgentEndpoint) -> None:
    """Answer one request to a sandbox; the connection ends with it."""
    body = seen.body
    plain = seen.path in _PLAIN or seen.path.startswith("/contexts/")
    if not (plain or seen.path.startswith(_RPC)):
        await client.send(raw_answer(404, b"404 page not found\n", {"content-type": "text/plain", **_LAST}))
        return
    if seen.path.endswith("/SendSignal") and _message(body).get("signal") not in _SIGNALS:
        await client.send(answer(400, {"code": "invalid_argument", "message": "invalid signal"}, _LAST))
        return
    headers = {name: value for name, value in seen.headers.items() if name in _HEADERS or name.startswith(_METADATA)}
    query = urlencode({name: value for name, value in seen.query.items() if name in _PARAMETERS})
    target = f"{seen.path}?{query}" if query else seen.path
    try:
        async with request(endpoint, seen.method, target, headers=headers, body=_asked(seen.path, body)) as response:
            await _tell(seen.path, response, client)
    except ConnectionCut:
        return


async def _tell(path: str, response: Response, client: ByteStream) -> None:
    if response.status >= 300:
        await client.send(_refusal(path, response.status, _message(await response.body())))
    elif path in _STREAMS:
        await _pass_on(response, client, _frames(response))
    elif path == "/execute":
        await _pass_on(response, client, _lines(response))
    elif path.startswith(_RPC):
        told = _message(await response.body())
        kept = {name: value for name, value in told.items() if name not in ("removed", "total")}
        await client.send(answer(response.status, kept, _LAST))
    else:
        kept = {name: response.headers[name] for name in ("content-range", "content-type") if name in response.headers}
        if path == "/files" and kept.get("content-type") != "application/json":
            length = int(response.headers["content-length"])
            await client.send(raw_answer(response.status, b"", {**kept, **_LAST}, claimed_length=length))
            async for piece in response.chunks:
                await client.send(piece)
            return
        body = await response.body()
        if path == "/files":
            body = json.dumps([{k: v for k, v in entry.items() if k != "size"} for entry in json.loads(body)]).encode()
        await client.send(raw_answer(response.status, body, {**kept, **_LAST}))


async def _pass_on(response: Response, client: ByteStream, pieces: AsyncIterator[bytes]) -> None:
    await client.send(stream_head(response.status, response.headers.get("content-type", "")))
    async for piece in pieces:
        await client.send(chunk(piece))
    await client.send(chunk(b""))


async def _frames(response: Response) -> AsyncIterator[bytes]:
    decoder = connect.StreamDecoder()
    async for received in response.chunks:
        for message in decoder.feed(received):
            if "error" in message and "event" not in message:
                yield connect.encode_message({"error": _known(message["error"])}, end=True)
            elif told := _event(message):
                yield connect.encode_message(told)
        if decoder.finished:
            yield connect.encode_message({}, end=True)
            return
    raise ConnectionCut


async def _lines(response: Response) -> AsyncIterator[bytes]:
    async for received in response.chunks:
        yield received


def _event(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    event = cast("Mapping[str, Any]", message.get("event", message))
    kept = {name: value for name, value in event.items() if name in _TOLD}
    if "end" in kept:
        kept["end"] = {name: value for name, value in kept["end"].items() if name in _END}
    if "start" in kept:
        kept["start"] = {name: value for name, value in kept["start"].items() if name == "pid"}
    if not kept:
        return None
    return {"event": kept} if "event" in message else kept


def _refusal(path: str, status: int, told: Mapping[str, Any]) -> bytes:
    if path.startswith(_RPC):
        return answer(status, _known(told), _LAST)
    return answer(status, {"code": status, "message": str(told.get("message", ""))}, _LAST)


_TEXTS: Final[Mapping[str, Callable[[str], str]]] = {
    "cwd_not_found": lambda _: "cwd '/somewhere' does not exist",
    "command_failed_to_start": lambda text: f"error starting process: {text}",
}


def _known(error: Mapping[str, Any]) -> dict[str, str]:
    """An error as their agent words it, without our code."""
    ours = connect.catalogue_error(error) or {}
    text = str(error.get("message", ""))
    reworded = _TEXTS.get(str(ours.get("code")))
    return {"code": str(error.get("code", "")), "message": text if reworded is None else reworded(text)}


def _asked(path: str, body: bytes) -> bytes:
    """The body with the fields that their agent knows."""
    known = _ASKED.get(path)
    if known is None or not body:
        return body
    if path not in _STREAMS:
        return json.dumps({name: value for name, value in _message(body).items() if name in known}).encode()
    framed = b""
    for message in connect.StreamDecoder().feed(body):
        framed += connect.encode_message({name: value for name, value in message.items() if name in known})
    return framed


def _message(body: bytes) -> Mapping[str, Any]:
    try:
        value: object = json.loads(body or b"{}")
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
