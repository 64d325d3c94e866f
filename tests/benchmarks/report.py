"""The table that a person reads and the document that a program reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.benchmarks.measure import Contender, Goal, Group


def table(groups: Sequence[Group]) -> str:
    """Success counts first, then medians, spread and each goal with what was measured."""
    return "\n".join(line for group in groups for line in _group_lines(group))


def _group_lines(group: Group) -> Iterator[str]:
    yield f"{group.title}"
    yield f"  {'ok':>9}  {'median':>10}  {'least':>10}  {'most':>10}"
    for contender in group.contenders:
        yield f"  {_row(group, contender)}"
        if contender.failures:
            yield f"             first failure: {contender.failures[0]}"
    for reason in group.skipped:
        yield f"    not run  {reason}"
    for goal in group.goals:
        yield f"  goal: {_goal_line(group, goal)}"
    yield ""


def _row(group: Group, contender: Contender) -> str:
    ok = f"{len(contender.values)}/{contender.attempts}"
    if contender.median is None:
        return f"{ok:>9}  {'-':>10}  {'-':>10}  {'-':>10}  {contender.name}"
    numbers = (contender.median, min(contender.values), max(contender.values))
    shown = "  ".join(f"{number * group.unit.factor:7.2f} {group.unit.label}" for number in numbers)
    return f"{ok:>9}  {shown}  {contender.name}"


def _goal_line(group: Group, goal: Goal) -> str:
    measured = measure(group, goal)
    if goal.at_most is not None:
        claim = f"{goal.contender}, at most {goal.at_most:g} {group.unit.label}"
        shown = f"{{:.2f}} {group.unit.label}"
    else:
        wanted, shown = _compared(goal)
        claim = f"{goal.contender} against {goal.against}, {wanted}"
    if measured is None:
        return f"{claim}: not measured"
    verdict = "met" if met(goal, measured) else "MISSED"
    return f"{claim}: {shown.format(measured)}, {verdict}"


def _compared(goal: Goal) -> tuple[str, str]:
    if goal.at_most_ratio is not None:
        return f"at most {goal.at_most_ratio:g}×", "{:.2f}×"
    if goal.at_least_times_faster is not None:
        return f"at least {goal.at_least_times_faster:g} times faster", "{:.1f} times"
    return f"at most {goal.at_most_added_ms:g} ms added", "{:.2f} ms"


def measure(group: Group, goal: Goal) -> float | None:
    """The number that a goal is about, or None when one side has no successful trial."""
    own = group.median(goal.contender)
    if own is None or goal.at_most is not None:
        return own
    other = group.median(goal.against)
    if other is None:
        return None
    if goal.at_most_ratio is not None:
        return own / other
    if goal.at_least_times_faster is not None:
        return other / own
    return own - other


def met(goal: Goal, measured: float) -> bool:
    """Whether what was measured reaches the goal."""
    for most in (goal.at_most, goal.at_most_ratio, goal.at_most_added_ms):
        if most is not None:
            return measured <= most
    return goal.at_least_times_faster is not None and measured >= goal.at_least_times_faster


def document(groups: Sequence[Group]) -> dict[str, object]:
    """Everything as JSON: every trial, not only the medians."""
    return {
        group.title: {
            "contenders": {
                contender.name: {
                    "ok": len(contender.values),
                    "attempts": contender.attempts,
                    "median": group.median(contender.name),
                    "unit": group.unit.label,
                    "values": [value * group.unit.factor for value in contender.values],
                    "failures": contender.failures,
                }
                for contender in group.contenders
            },
            "not_run": list(group.skipped),
            "goals": [_goal_document(group, goal) for goal in group.goals],
        }
        for group in groups
    }


def _goal_document(group: Group, goal: Goal) -> dict[str, object]:
    measured = measure(group, goal)
    return {
        "contender": goal.contender,
        "against": goal.against,
        "at_most_ratio": goal.at_most_ratio,
        "at_least_times_faster": goal.at_least_times_faster,
        "at_most_added_ms": goal.at_most_added_ms,
        "at_most": goal.at_most,
        "measured": measured,
        "met": None if measured is None else met(goal, measured),
    }
