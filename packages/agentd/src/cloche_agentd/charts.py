"""What a matplotlib figure shows, as data: the charts of E2B's interpreter, read from the figure's own objects.

matplotlib is user code's library, and untyped here. A figure must have been drawn: ticks have no text before.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any, Final

from . import limits

Chart = dict[str, Any]

_UNIT: Final = re.compile(r"\s\(([^()]+)\)|\[([^\[\]]+)\]")
_BOXES: Final = "_cloche_boxes"
_UNNAMED: Final = re.compile(r"_(?:child|container)(\d+)\Z")


def record_boxes(axes_class: Any) -> None:
    """Make axes remember the numbers of their box plots: their lines do not tell them from other lines."""
    original: Callable[..., Any] = axes_class.bxp
    if original.__dict__.get(_BOXES):
        return

    @functools.wraps(original)
    def bxp(self: Any, bxpstats: Any, *arguments: Any, **options: Any) -> Any:
        stats = list(bxpstats)
        artists = original(self, stats, *arguments, **options)
        self.__dict__.setdefault(_BOXES, []).append((stats, artists))
        return artists

    bxp.__dict__[_BOXES] = True
    axes_class.bxp = bxp


def chart_of(figure: Any) -> Chart | None:
    """Return the chart of a figure, a superchart of several; None where it shows no data."""
    charts: list[Chart] = []
    budget = _Budget(figure)
    for axes in figure.axes[: limits.CHARTS]:
        if axes.get_label() != "<colorbar>" and axes.has_data():
            parts = list(_parts(axes, budget))
            charts.append(parts[0] if len(parts) == 1 else _super(_title(axes.get_title()), parts))
    if not charts:
        return None
    if len(charts) == 1:
        return charts[0]
    heading = getattr(figure, "_suptitle", None)
    return _super(_title(heading.get_text() if heading is not None else ""), charts)


class _Budget:
    """How many points of each series a chart may have: of longer ones it has evenly spaced ones, and says so."""

    def __init__(self, figure: Any) -> None:
        total = sum(len(line.get_xdata(orig=False)) for axes in figure.axes for line in axes.get_lines())
        total += sum(len(each.get_offsets()) for axes in figure.axes for each in axes.collections)
        self._step = max(1, math.ceil(total / limits.CHART_POINTS))

    def series(self, label: str, xs: Sequence[Any], ys: Sequence[Any]) -> Chart:
        """Return one series."""
        total = min(len(xs), len(ys))
        kept = range(0, total, self._step)
        element: Chart = {"label": _text(label), "points": [[_value(xs[i]), _value(ys[i])] for i in kept]}
        if len(kept) < total:
            element["points_total"] = total
        return element


def _parts(axes: Any, budget: _Budget) -> Iterator[Chart]:
    """Yield one chart for each kind of thing on the axes; one without elements where no kind is known."""
    boxes = axes.__dict__.get(_BOXES, [])
    own = {id(artist) for _stats, artists in boxes for group in artists.values() for artist in group}
    bars = [container for container in axes.containers if type(container).__name__ == "BarContainer" and container]
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    scatters = [
        each for each in axes.collections if type(each).__name__ == "PathCollection" and len(each.get_offsets())
    ]
    # Lines across the whole axes (axhline) are marks, not data: they live in other coordinates.
    lines = [line for line in axes.get_lines() if id(line) not in own and line.get_transform() == axes.transData]
    lines = [line for line in lines if len(line.get_xdata(orig=False))]
    found = False
    for there, make in (
        (bars, lambda: _bar(axes, bars)),
        (boxes, lambda: _box(axes, boxes)),
        (wedges, lambda: _pie(axes, wedges)),
        (lines, lambda: _line(axes, lines, budget)),
        (scatters, lambda: _scatter(axes, scatters, budget)),
    ):
        if there:
            found = True
            yield make()
    if not found:
        yield {"type": "unknown", "title": _title(axes.get_title()), "elements": []}


# -- kinds of charts ------------------------------------------------------------------------------------------------


def _line(axes: Any, lines: Sequence[Any], budget: _Budget) -> Chart:
    elements = [
        budget.series(_label(line, "Line", number), line.get_xdata(orig=True), line.get_ydata(orig=True))
        for number, line in enumerate(lines[: limits.CHART_ELEMENTS])
    ]
    return _points("line", axes, elements)


def _scatter(axes: Any, scatters: Sequence[Any], budget: _Budget) -> Chart:
    elements: list[Chart] = []
    for number, each in enumerate(scatters[: limits.CHART_ELEMENTS]):
        offsets = each.get_offsets()
        xs = [_on_axis(axes.xaxis, offset[0]) for offset in offsets]
        ys = [_on_axis(axes.yaxis, offset[1]) for offset in offsets]
        elements.append(budget.series(_label(each, "Scatter", number), xs, ys))
    return _points("scatter", axes, elements)


def _bar(axes: Any, containers: Sequence[Any]) -> Chart:
    """Return bars by their categories, which are told as x also where the bars lie on their side."""
    elements: list[Chart] = []
    sideways = False
    for number, container in enumerate(containers):
        lying = getattr(container, "orientation", None) == "horizontal"
        sideways = sideways or lying
        group = _label(container, "Group", number)
        for bar in container[: limits.CHART_ELEMENTS - len(elements)]:
            middle = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            label = _category(axes.yaxis if lying else axes.xaxis, middle)
            value = bar.get_width() if lying else bar.get_height()
            elements.append({"label": label, "group": group, "value": _value(value)})
    return _plane("bar", axes, elements, sideways=sideways)


def _pie(axes: Any, wedges: Sequence[Any]) -> Chart:
    elements = [
        {
            "label": _text(wedge.get_label()),
            "angle": _value(round(abs(float(wedge.theta2) - float(wedge.theta1)), 6)),
            "radius": _value(wedge.r),
        }
        for wedge in wedges[: limits.CHART_ELEMENTS]
    ]
    return {"type": "pie", "title": _title(axes.get_title()), "elements": elements}


def _box(axes: Any, recorded: Sequence[tuple[Sequence[Any], Any]]) -> Chart:
    elements: list[Chart] = []
    sideways = False
    for stats, artists in recorded:
        for stat, median in zip(stats, artists["medians"], strict=False):
            xs, ys = (list(found) for found in (median.get_xdata(), median.get_ydata()))
            lying = xs[0] == xs[-1] and ys[0] != ys[-1]
            sideways = sideways or lying
            across = ys if lying else xs
            label = stat.get("label") or _category(axes.yaxis if lying else axes.xaxis, (across[0] + across[-1]) / 2)
            elements.append(_box_element(label, stat))
    return _plane("box_and_whisker", axes, elements[: limits.CHART_ELEMENTS], sideways=sideways)


def _box_element(label: Any, stat: Any) -> Chart:
    outliers = list(stat.get("fliers", ()))
    element: Chart = {
        "label": _text(label),
        "min": _value(stat["whislo"]),
        "first_quartile": _value(stat["q1"]),
        "median": _value(stat["med"]),
        "third_quartile": _value(stat["q3"]),
        "max": _value(stat["whishi"]),
        "outliers": [_value(each) for each in outliers[: limits.CHART_ELEMENTS]],
    }
    if len(outliers) > limits.CHART_ELEMENTS:
        element["outliers_total"] = len(outliers)
    return element


def _super(title: str | None, charts: Sequence[Chart]) -> Chart:
    return {"type": "superchart", "title": title, "elements": list(charts)}


# -- the plane that they lie in -------------------------------------------------------------------------------------


def _plane(kind: str, axes: Any, elements: list[Chart], *, sideways: bool = False) -> Chart:
    x, y = (axes.get_ylabel(), axes.get_xlabel()) if sideways else (axes.get_xlabel(), axes.get_ylabel())
    return {
        "type": kind,
        "title": _title(axes.get_title()),
        "x_label": _title(x),
        "y_label": _title(y),
        "x_unit": _unit(x),
        "y_unit": _unit(y),
        "elements": elements,
    }


def _points(kind: str, axes: Any, elements: list[Chart]) -> Chart:
    chart = _plane(kind, axes, elements)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        ticks = axis.get_majorticklocs()[: limits.CHART_TICKS]
        labels = [_text(label.get_text()) for label in axis.get_majorticklabels()[: limits.CHART_TICKS]]
        chart[f"{name}_ticks"] = [_on_axis(axis, tick) if _is_datetime(axis) else _value(tick) for tick in ticks]
        chart[f"{name}_tick_labels"] = labels
        chart[f"{name}_scale"] = _scale(axis, ticks, labels)
    return chart


def _scale(axis: Any, ticks: Sequence[Any], labels: Sequence[str]) -> str:
    scale = str(axis.get_scale())
    if _is_datetime(axis):
        return "datetime"
    if scale != "linear":
        return scale
    counted = bool(labels) and [float(tick) for tick in ticks] == [float(number) for number in range(len(ticks))]
    named = any(label != str(number) for number, label in enumerate(labels))
    return "categorical" if _mapping(axis) is not None or (counted and named and _has_names(axis)) else "linear"


def _converter(axis: Any) -> Any:
    get = getattr(axis, "get_converter", None)
    return get() if callable(get) else getattr(axis, "converter", None)


def _is_datetime(axis: Any) -> bool:
    return "Date" in type(_converter(axis)).__name__


def _mapping(axis: Any) -> dict[str, Any] | None:
    """Return the names of a categorical axis with their places."""
    units = getattr(axis, "units", None)
    return getattr(units, "_mapping", None) if type(units).__name__ == "UnitData" else None


def _has_names(axis: Any) -> bool:
    """Whether someone wrote the labels of the ticks: they are not the ticks' own numbers."""
    return type(axis.get_major_formatter()).__name__ in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter")


def _on_axis(axis: Any, place: Any) -> Any:
    """Return what a place on an axis stands for: a time, a name, or its number."""
    if _is_datetime(axis):
        dates: Any = sys.modules["matplotlib.dates"]
        return _value(dates.num2date(place).replace(tzinfo=None))
    mapping = _mapping(axis)
    if mapping is not None:
        return next((_text(name) for name, number in mapping.items() if number == place), _value(place))
    return _value(place)


def _category(axis: Any, place: Any) -> str:
    """Return the name at a place: that of the nearest tick where ticks have names, else the place itself."""
    if _has_names(axis):
        ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
        nearest = min(ticks, key=lambda pair: abs(pair[0] - place), default=None)
        if nearest is not None and abs(nearest[0] - place) < 0.5 and nearest[1].get_text():
            return _text(nearest[1].get_text())
    found = _on_axis(axis, place)
    return found if isinstance(found, str) else f"{round(found, 6):g}" if isinstance(found, int | float) else ""


# -- values ---------------------------------------------------------------------------------------------------------


def _value(found: Any) -> Any:
    """Return a number, or a text; None for what is not finite, which JSON has no word for."""
    if isinstance(found, date):
        return found.isoformat()
    if type(found).__name__ == "datetime64":
        return str(found.astype("datetime64[s]"))
    if isinstance(found, str):
        return _text(found)
    try:
        number = float(found)
    except (TypeError, ValueError):
        return _text(str(found))
    return number if math.isfinite(number) else None


def _label(artist: Any, kind: str, number: int) -> str:
    label = str(artist.get_label())
    unnamed = _UNNAMED.match(label)
    if unnamed:
        return f"{kind} {unnamed[1]}"
    return _text(label) if label else f"{kind} {number}"


def _text(text: Any) -> str:
    return str(text)[: limits.CHART_TEXT]


def _title(text: str) -> str | None:
    return _text(text) or None


def _unit(label: str) -> str | None:
    found = _UNIT.search(label)
    return _text(found[1] or found[2]) if found else None
