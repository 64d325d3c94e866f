"""docs/explanation/speed.md: the measured table and picture in a page that is otherwise written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.environment import ROOT
from tests.benchmarks.measure import Group
from tests.benchmarks.picture import draw

PAGE = ROOT / "docs" / "explanation" / "speed.md"
PICTURE = ROOT / "docs" / "explanation" / "speed.png"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# What the test of the examples wants to know of a block that it does not run.
_MARK = "<!-- not run: nox -s bench measures it -->"


def write_page(groups: Sequence[Group], report: str, *, some: bool) -> None:
    """Replace what stands between the two marks of the page, and its picture.

    Args:
        some: only some groups were measured; the numbers of the others, and the picture, stay.
    """
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    shown, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has lost its marks")
    if some:
        report = merged(shown.partition("```text\n")[2].partition("```")[0], report)
    else:
        draw(groups, PICTURE)
    measured = f"\n![The medians as bars]({PICTURE.name})\n\n{_MARK}\n```text\n{report.rstrip()}\n```\n"
    PAGE.write_text(f"{before}{BEGIN}{measured}{END}{after}", encoding="utf-8")


def merged(shown: str, report: str) -> str:
    """What is shown, with the groups of a new report in the place of those of the same title, or behind them."""
    head, *old = shown.strip().split("\n\n")
    _head, *new = report.strip().split("\n\n")
    fresh = {group.partition("\n")[0]: group for group in new}
    kept = [fresh.pop(group.partition("\n")[0], group) for group in old]
    return "\n\n".join([head, *kept, *fresh.values()])
