"""matplotlib without a screen: figures become pictures and charts as data, by plt.show() or when the code ends."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from . import charts
from .display import Bundle, Displays

_BACKEND: Final = "cloche_figures"
_NAME: Final = f"module://{_BACKEND}"


class _Backend(ModuleType):
    """A matplotlib backend that exists in memory only; it touches matplotlib when matplotlib asks for it."""

    def __getattr__(self, name: str) -> Any:
        if name == "FigureCanvas":
            canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg
            charts.record_boxes(importlib.import_module("matplotlib.axes").Axes)
            # matplotlib also copies vars() of the module.
            self.__dict__["FigureCanvas"] = canvas
            return canvas
        raise AttributeError(name)


class _PyplotWatch:
    """A finder that finds nothing: it learns that pyplot is about to load, and names our backend to matplotlib.

    The variable MPLBACKEND would do it too, but programs that user code starts inherit it, and have no such module.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname == "matplotlib.pyplot" and "matplotlib" in sys.modules:
            matplotlib: Any = sys.modules["matplotlib"]
            matplotlib.rcParams["backend"] = _NAME
        return None


class Figures:
    """Watches pyplot's figures in this process. matplotlib is untyped here: it is user code's library."""

    def __init__(self, displays: Displays) -> None:
        self._displays = displays
        self._prepared = False
        displays.show_figure = self._as_figure
        backend = _Backend(_BACKEND)
        backend.__dict__["show"] = self._show
        sys.modules[_BACKEND] = backend
        sys.meta_path.insert(0, _PyplotWatch())

    def prepare(self) -> None:
        """Point a matplotlib that init had imported before the fork to our backend."""
        if self._prepared:
            return
        self._prepared = True
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.switch_backend(_NAME)

    def _show(self, *_arguments: object, **_options: object) -> None:
        self.flush()

    def flush(self) -> None:
        """Show every open figure and close it."""
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return
        for number in pyplot.get_fignums():
            figure: Any = pyplot.figure(number)
            try:
                bundle = self._bundle(figure)
            finally:
                pyplot.close(figure)
            self._displays.send_bundle(bundle)

    def _as_figure(self, value: object) -> Bundle | None:
        """Return the picture of a figure that is shown as an object; it is not shown again at the end."""
        module: Any = sys.modules.get("matplotlib.figure")
        if module is None or not isinstance(value, module.Figure):
            return None
        bundle = self._bundle(value)
        with contextlib.suppress(Exception):
            sys.modules["matplotlib.pyplot"].close(value)
        return bundle

    def _bundle(self, figure: Any) -> Bundle:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight")
        bundle: Bundle = {"image/png": picture.getvalue(), "text/plain": repr(figure)}
        # A figure that cannot be read as data is still a picture.
        with contextlib.suppress(Exception):
            chart = charts.chart_of(figure)
            if chart is not None:
                bundle["e2b/chart"] = chart
        return bundle
