"""Rich results: what an object can be shown as, one result per display."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Final, cast

from . import limits, streams
from .control import Frame

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
}
_BINARY: Final = frozenset({"image/png", "image/jpeg", "application/pdf"})
_RESULTS_FOLDER: Final = "results"

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


def _payload(media_type: str, found: object) -> object:
    """Return the representation in the form that travels: text, base64 or JSON; None when it has none."""
    if isinstance(found, bytes | bytearray):
        if media_type in _BINARY or not media_type.startswith("text/"):
            return base64.b64encode(found).decode()
        return found.decode("utf-8", "replace")
    if isinstance(found, str):
        return found.encode("utf-8", "replace").decode()
    if media_type.endswith("json"):
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            json.dumps(found)
            return found
    return None


class Displays:
    """Sends results of the running execution; what is too large, or one too many, goes to a file instead."""

    def __init__(self, send: Callable[[Frame], None]) -> None:
        self._send = send
        self._execution = 0
        self._shown = 0
        self._inline_bytes = limits.RESULT_INLINE_BYTES
        self._inline_count = limits.RESULTS
        self.show_figure: Callable[[object], Bundle | None] = lambda _value: None

    def begin(self, request: Frame, execution: int) -> None:
        """Start counting for a new execution, with the limits that the request gives."""
        self._execution = execution
        self._shown = 0
        self._inline_bytes = _bound(request.get("max_result_bytes"), limits.RESULT_INLINE_BYTES)
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
        data: Bundle = {}
        files: dict[str, str] = {}
        self._shown += 1
        for media_type, found in bundle.items():
            payload = _payload(media_type, found)
            if payload is None:
                continue
            raw = _raw(media_type, payload)
            if len(raw) > self._inline_bytes or (self._shown > self._inline_count and media_type != "text/plain"):
                files[media_type] = self._save(media_type, raw)
            else:
                data[media_type] = payload
        streams.flush()
        if self._shown <= limits.RESULTS * 16:
            self._send({"t": "result", "main": main, "data": data, "files": files})

    def _save(self, media_type: str, raw: bytes) -> str:
        name = f"result-{self._execution}-{self._shown}.{_SUFFIXES.get(media_type, 'bin')}"
        path = os.path.abspath(os.path.join(_RESULTS_FOLDER, name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(raw)
        return path


def _raw(media_type: str, payload: object) -> bytes:
    if not isinstance(payload, str):
        return json.dumps(payload).encode()
    if media_type in _BINARY:
        with contextlib.suppress(ValueError):
            return base64.b64decode(payload)
    return payload.encode()


def _bound(asked: object, most: int) -> int:
    return min(asked, most) if isinstance(asked, int) and asked >= 0 else most
