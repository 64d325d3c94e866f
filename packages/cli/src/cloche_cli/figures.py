"""Save what a program displayed as files, without touching a file that is there."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cloche_cli.usage import Refused
from cloche_sdk import CodeResult

_FORMATS: Final = ("png", "jpeg", "svg", "pdf")  # the first that a display has is the one that is saved
_BINARY: Final = frozenset({"png", "jpeg", "pdf"})


def save_figures(results: Sequence[CodeResult], folder: Path) -> list[Path]:
    """Write each image to a new file `figure-N` in the folder, and return the files.

    Raises:
        Refused: the folder cannot be written.
    """
    images = [found for found in map(_image, results) if found is not None]
    try:
        return [_write(folder, *image) for image in images]
    except OSError as error:
        raise Refused("unwritable", "names a folder that figures cannot be saved in.", field="--figures") from error


def is_image(result: CodeResult) -> bool:
    """Whether there is something to save; its text is then only a stand-in."""
    return any(name in result.formats for name in _FORMATS)


def _image(result: CodeResult) -> tuple[str, bytes] | None:
    for name in _FORMATS:
        data = result.formats.get(name)
        if data is not None:
            return name, base64.b64decode(data) if name in _BINARY else data.encode()
    return None


def _write(folder: Path, ending: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / f"figure-{number}.{ending}"
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
            continue
        return path
