"""Rich results: what an object can be shown as, one result per display."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from . import limits, streams
from .control import Header
from .tables import table_of

_METHODS: Final = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/pdf", "_repr_pdf_"),
    ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"),
)
_SUFFIXES: Final = {
    "text/plain": "txt",
    "text/html": "html",
    "text/markdown": "md",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg",
    "application/pdf": "pdf",
    "text/latex": "tex",
    "application/json": "json",
    "application/javascript": "js",
    "e2b/chart": "chart.json",
    "e2b/data": "data.json",
}
_BINARY: Final = frozenset({"image/png", "image/jpeg", "application/pdf"})
_RESULTS_FOLDER: Final = "results"
_MOST_SHOWN: Final = 1000

Bundle = dict[str, object]


def bundle_of(value: object) -> Bundle:
    """Return every representation of an object by media type; text/plain is always there.

    Methods are looked up on the class, so that objects which answer to any attribute name are not taken in.
    """
    bundle: Bundle = {}
    kind = type(value)
    if not isinstance(value, type):
        bundle.update(_mimebundle(value, kind))
        for media_type, name in _METHODS:
            method = getattr(kind, name, None)
            if media_type not in bundle and callable(method):
                found = _quietly(lambda method=method: method(value))
                if isinstance(found, tuple):
                    found = cast("tuple[object, ...]", found)[0]
                if found is not None:
                    bundle[media_type] = found
        table = _quietly(lambda: table_of(value))
        if table is not None:
            bundle.setdefault("e2b/data", table)
    bundle.setdefault("text/plain", _quietly(lambda: repr(value)) or f"<{kind.__name__}>")
    return bundle


def _mimebundle(value: object, kind: type) -> Bundle:
    method = getattr(kind, "_repr_mimebundle_", None)
    if not callable(method):
        return {}
    found = _quietly(lambda: method(value, include=None, exclude=None))
    if isinstance(found, tuple):
        found = cast("tuple[object, ...]", found)[0]
    if not isinstance(found, Mapping):
        return {}
    return {str(key): item for key, item in cast("Mapping[object, object]", found).items() if item is not None}


def _quietly(make: Callable[[], object]) -> object:
    """Run a representation method of user code; one that fails represents nothing."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - user code may raise anything
        sys.stderr.write(f"representation failed: {type(error).__name__}\n")
        return None


def _encoded(media_type: str, found: object) -> tuple[str, bytes] | None:
    """Return a representation as it travels, with its form: text, binary or json. None when it has none."""
    if media_type in _BINARY and isinstance(found, str):
        try:
            found = base64.b64decode(found)
        except ValueError:
            return None
    if isinstance(found, bytes | bytearray):
        return ("text" if media_type.startswith("text/") else "binary"), bytes(found)
    if isinstance(found, str) and not media_type.endswith("json"):
        return "text", found.encode("utf-8", "replace")
    try:
        return "json", json.dumps(found).encode()
    except (TypeError, ValueError, RecursionError):
        return None


class Displays:
    """Sends results of the running execution; what is too large, or one too many, goes to a file instead."""

    def __init__(self, send: Callable[[Header, Sequence[bytes]], None]) -> None:
        self._send = send
        self._execution = 0
        self._shown = self._rich = 0
        self._inline_bytes = limits.RESULT_BYTES
        self._inline_count = limits.RESULTS
        self.show_figure: Callable[[object], Bundle | None] = lambda _value: None

    def begin(self, request: Header, execution: int) -> None:
        """Start counting for a new execution, with the limits that the request gives."""
        self._execution = execution
        self._shown = self._rich = 0
        self._inline_bytes = _bound(request.get("max_result_bytes"), limits.RESULT_BYTES)
        self._inline_count = _bound(request.get("max_results"), limits.RESULTS)

    def display(self, *values: object, **options: object) -> None:
        """Show each object, as notebooks do. `raw=True` takes a dictionary of media types."""
        for value in values:
            if options.get("raw") and isinstance(value, Mapping):
                self.send_bundle({str(key): item for key, item in cast("Mapping[object, object]", value).items()})
            else:
                self.show(value)

    def show(self, value: object, *, main: bool = False) -> None:
        """Show one object as one result."""
        own = getattr(type(value), "_ipython_display_", None)
        if callable(own) and not isinstance(value, type):
            own(value)
            return
        self.send_bundle(self.show_figure(value) or bundle_of(value), main=main)

    def send_bundle(self, bundle: Bundle, *, main: bool = False) -> None:
        """Send one result."""
        self._shown += 1
        self._rich += any(media_type != "text/plain" for media_type in bundle)
        streams.flush()
        if self._shown > _MOST_SHOWN:
            return
        types: list[tuple[str, str]] = []
        parts: list[bytes] = []
        files: list[str] = []
        left = limits.RESULT_BYTES
        for media_type, found in list(bundle.items())[: limits.RESULT_TYPES]:
            encoded = _encoded(media_type, found)
            if encoded is None:
                continue
            form, raw = encoded
            one_too_many = self._rich > self._inline_count and media_type != "text/plain"
            if one_too_many or len(raw) > min(left, _most(form, self._inline_bytes)):
                files.append(self._save(media_type, raw))
            else:
                types.append((media_type, form))
                parts.append(raw)
                left -= len(raw)
        self._send({"t": "result", "main": main, "types": types, "files": files}, parts)

    def _save(self, media_type: str, raw: bytes) -> str:
        name = f"result-{self._execution}-{self._shown}.{_SUFFIXES.get(media_type, 'bin')}"
        path = os.path.abspath(os.path.join(_RESULTS_FOLDER, name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(raw)
        return path


def _most(form: str, inline_bytes: int) -> int:
    return min(inline_bytes, limits.RESULT_JSON_BYTES) if form == "json" else inline_bytes


def _bound(asked: object, most: int) -> int:
    return min(asked, most) if isinstance(asked, int) and asked >= 0 else most
