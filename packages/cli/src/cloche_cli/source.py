"""Find the program that a word on the command line means, and its language."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloche_cli.usage import Refused

ARGUMENT: Final = "CODE|FILE|-"
MAXIMUM_BYTES: Final = 1024 * 1024
_LANGUAGE_OF_ENDING: Final = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".sh": "shell",
    ".bash": "shell",
    ".r": "r",
}


@dataclass(frozen=True)
class Source:
    code: str
    language: str


def read_source(word: str, language: str | None) -> Source:
    """Read stdin for `-`, the file if the word names one, else take the word itself.

    Raises:
        Refused: unreadable, empty, larger than 1 MiB, or not UTF-8.
    """
    if word == "-":
        return Source(_decode(sys.stdin.buffer.read(MAXIMUM_BYTES + 1)), language or "python")
    path = Path(word)
    ending = path.suffix.lower()
    if _names_a_file(path):
        return Source(_read(path), language or _LANGUAGE_OF_ENDING.get(ending, "python"))
    if ending in _LANGUAGE_OF_ENDING and len(word.split()) == 1 and "(" not in word:
        raise _refused("not_found", "looks like the name of a file, and there is none of that name here.")
    return Source(_decode(word.encode("utf-8", "surrogateescape")), language or "python")


def _names_a_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a program's text is rarely a possible file name
        return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _decode(file.read(MAXIMUM_BYTES + 1))
    except OSError as error:
        raise _refused("unreadable", "names a file that cannot be read.") from error


def _decode(data: bytes) -> str:
    if len(data) > MAXIMUM_BYTES:
        raise _refused("maxLength", "is larger than the 1 MiB that a program may have.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused("encoding", "is not UTF-8 text.") from error
    if not text.strip():
        raise _refused("minLength", "holds no program.")
    return text


def _refused(rule: str, sentence: str) -> Refused:
    return Refused(rule, sentence, field=ARGUMENT)
