"""The same numbers as bars: median, with a line from the fastest to the slowest trial."""

# The keyword arguments of matplotlib have no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.benchmarks.measure import Contender, Group


def draw(groups: Sequence[Group], path: Path) -> None:
    """Write a PNG with one panel per group."""
    drawn = [(group, bars) for group in groups if (bars := [one for one in group.contenders if one.values])]
    figure = Figure(figsize=(9, 1.2 + sum(0.36 * len(bars) + 0.9 for _, bars in drawn)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=[len(bars) + 1 for _, bars in drawn])
    for row, (group, bars) in enumerate(drawn):
        axes: Axes = panels[row, 0]
        _bars(axes, group, bars)
    figure.savefig(path, dpi=90)


def _bars(axes: Axes, group: Group, contenders: Sequence[Contender]) -> None:
    factor = group.unit.factor
    medians = [(one.median or 0.0) * factor for one in contenders]
    low = [median - min(one.values) * factor for median, one in zip(medians, contenders, strict=True)]
    high = [max(one.values) * factor - median for median, one in zip(medians, contenders, strict=True)]
    places = range(len(contenders))
    axes.barh(places, medians, xerr=[low, high], color="#4c78a8", ecolor="#999999", height=0.6)
    axes.set_yticks(places, [one.name.strip() for one in contenders])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08 * max((max(one.values) * factor for one in contenders), default=1.0))
    axes.set_xlabel(group.unit.label)
    axes.set_title(group.title, loc="left", fontsize=10)
    for place, median in zip(places, medians, strict=True):
        axes.annotate(f"{median:.1f}", (median, place), textcoords="offset points", xytext=(4, -10), fontsize=7)
