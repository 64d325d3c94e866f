"""Parsers without I/O: any cut of the input gives the same result."""

from __future__ import annotations

import ast
import json
import random
import struct
from pathlib import Path

import pytest

from cloche_agentd import control, failures, fields, limits, multipart
from cloche_agentd.failures import AgentError
from cloche_agentd.httpwire import BadRequest, ChunkedBody
from cloche_agentd.multipart import Data, Part, PartEnd
from cloche_agentd.shellisms import without_shellisms


def _cuts(data: bytes, chooser: random.Random) -> list[bytes]:
    pieces: list[bytes] = []
    while data:
        size = chooser.randint(1, 40)
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def test_chunked_bodies_survive_any_cut(seed: int) -> None:
    """The decoder takes exactly the body and leaves what follows."""
    chooser = random.Random(seed)
    for _ in range(200):
        payload = chooser.randbytes(chooser.randint(0, 300))
        wire = b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in _cuts(payload, chooser)) + b"0\r\n\r\nNEXT"
        body, buffer, found = ChunkedBody(), bytearray(), b""
        for piece in _cuts(wire, chooser):
            buffer += piece
            found += b"".join(body.feed(buffer))
        assert (found, bytes(buffer), body.done) == (payload, b"NEXT", True)


@pytest.mark.parametrize(
    "wire", [b"x\r\n", b"-1\r\n", b"1\r\nabc\r\n", b"\r\n\r\n", b"5" * 2000, b"ffffffffffffffff0\r\n"]
)
def test_malformed_chunks_are_refused(wire: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadRequest):
        ChunkedBody().feed(bytearray(wire))


def test_multipart_survives_any_cut(seed: int) -> None:
    """Names and contents come out the same for every cut."""
    chooser = random.Random(seed)
    contents = [b"", b"\r\n", b"\r\n--", b"\r\n--boundar", b"--boundary", chooser.randbytes(500)]
    wire = b"preamble\r\n"
    for number, content in enumerate(contents):
        wire += b'--boundary\r\ncontent-disposition: form-data; name="file"; filename="%d"\r\nX: y\r\n\r\n' % number
        wire += content + b"\r\n"
    wire += b"--boundary--\r\nepilogue"
    for _ in range(100):
        parser = multipart.Parser(b"boundary")
        found: list[tuple[str | None, bytes]] = []
        for piece in _cuts(wire, chooser):
            for event in parser.feed(piece):
                match event:
                    case Part(_name, filename):
                        found.append((filename, b""))
                    case Data(data):
                        found[-1] = (found[-1][0], found[-1][1] + data)
                    case PartEnd():
                        pass
        assert parser.complete
        assert found == [(str(number), content) for number, content in enumerate(contents)]


def test_control_frames_are_bounded() -> None:
    """A context cannot make the keeper hold more than one frame's limit."""
    with pytest.raises(control.BrokenControl):
        control.Decoder().feed(struct.pack(">I", limits.CONTROL_HEADER_BYTES + 1))
    with pytest.raises(control.BrokenControl):
        control.Decoder().feed(control.encode({"parts": [limits.RESULT_BYTES, 1]}))
    decoder = control.Decoder()
    wire = control.encode({"a": "ä" * 10}, [b"", b"raw", b"\0" * 9])
    (frame,) = [decoder.feed(wire[i : i + 1]) for i in range(len(wire))][-1]
    assert frame.header["a"] == "ä" * 10
    assert frame.parts == [b"", b"raw", b"\0" * 9]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1 % 2", "x = 1 % 2"),
        ("s = '''\n!not\n%this\n'''", "s = '''\n!not\n%this\n'''"),
        ("%matplotlib inline\nx", "pass\nx"),
        ("!ls -l", "__import__('os').system('ls -l') and None"),
        ("if x:\n    !ls", "if x:\n    __import__('os').system('ls') and None"),
        ("%pip install a", "__import__('os').system('pip install a') and None"),
        ("a b c\n!ls", "a b c\n!ls"),
        ("%unknown thing", "%unknown thing"),
    ],
)
def test_only_code_that_is_not_python_is_rewritten(code: str, expected: str) -> None:
    """Python that parses is never touched."""
    assert without_shellisms(code) == expected


def test_integers_keep_their_meaning() -> None:
    """Protobuf JSON writes 64-bit numbers as text; booleans and floats are no integers."""
    assert fields.whole({"a": "12"}, "a") == 12
    wrongs: list[object] = [True, 1.0, "1.0", "²", 2**70, {}, "9" * 30]
    for wrong in wrongs:
        with pytest.raises(AgentError):
            fields.whole({"a": wrong}, "a")


def test_every_error_of_the_agent_is_in_the_catalogue() -> None:
    """S5: the code that an error carries is a code of the catalogue."""
    repository = Path(__file__).parents[3]
    known = set(json.loads((repository / "schemas/errors/catalog.json").read_text())["errors"])
    made: set[str] = set()
    for path in Path(control.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "AgentError":
                code = node.args[2]
                if isinstance(code, ast.Constant):
                    made.add(str(code.value))
    made.update(cloche for _code, _text, cloche in failures._BY_ERRNO.values())  # pyright: ignore[reportPrivateUsage]
    assert len(made) > 15
    assert made - known == set()
