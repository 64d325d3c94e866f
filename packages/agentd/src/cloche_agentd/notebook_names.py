"""`from IPython.display import display, HTML` in sandboxes without IPython: the few names that notebook code uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

_TEXT_KINDS: Final = {
    "HTML": "text/html",
    "Markdown": "text/markdown",
    "Latex": "text/latex",
    "Math": "text/latex",
    "SVG": "image/svg+xml",
    "Javascript": "application/javascript",
    "JSON": "application/json",
    "Pretty": "text/plain",
}
_IMAGE_KINDS: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"%PDF": "application/pdf"}


class Shown:
    """Data with the media type that it is shown as."""

    _media_type = "text/plain"

    def __init__(
        self, data: object = None, url: str | None = None, filename: str | None = None, **_more: object
    ) -> None:
        if isinstance(data, str) and filename is None and self._names_a_file(data):
            filename = data
        if filename is not None:
            with open(filename, "rb") as stream:
                raw = stream.read()
            data = raw if self._media_type == "image" else raw.decode("utf-8", "replace")
        self.data = data
        self.url = url

    def _names_a_file(self, data: str) -> bool:
        return self._media_type == "image" and os.path.isfile(data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _repr_mimebundle_(self, **_options: object) -> dict[str, object]:
        if self.data is None:
            return {"text/html": f'<img src="{self.url}">'} if self.url else {}
        if self._media_type != "image":
            return {self._media_type: self.data}
        if not isinstance(self.data, bytes):
            return {}
        kind = next((kind for start, kind in _IMAGE_KINDS.items() if self.data.startswith(start)), None)
        return {kind: self.data} if kind is not None else {}


def _clear_nothing(*_arguments: object, **_options: object) -> None:
    """What was shown has left already."""


class NotebookNames:
    """Finds IPython where no other finder does: it stands last, and a real IPython comes first."""

    def __init__(self, display: Callable[..., None]) -> None:
        self._display = display

    def install(self) -> None:
        """Offer the names to user code of this process."""
        sys.meta_path.append(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        # importlib asks for the two methods below and no more; its base class would cost every start 10 ms.
        loader = cast("Loader", self)
        if fullname == "IPython":
            return ModuleSpec(fullname, loader, is_package=True)
        return ModuleSpec(fullname, loader) if fullname == "IPython.display" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        del spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        names = module.__dict__
        if module.__name__ == "IPython":
            names.update(get_ipython=lambda: None, version_info=(0, 0, 0), __version__="0", __path__=[])
            return
        names["display"] = self._display
        names["clear_output"] = _clear_nothing
        for name, media_type in (*_TEXT_KINDS.items(), ("Image", "image")):
            names[name] = type(name, (Shown,), {"_media_type": media_type, "__module__": module.__name__})
