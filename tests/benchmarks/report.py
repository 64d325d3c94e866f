"""The table that a person reads and the document that a program reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.benchmarks.measure import Contender, Goal, Group


def table(groups: Sequence[Group]) -> str:
    """Success counts first, then medians, spread and each goal with what was measured."""
    return "\n".join(line for group in groups for line in _group_lines(group))


def _group_lines(group: Group) -> Iterator[str]:
    yield f"{group.title}"
    yield f"  {'ok':>9}  {'median':>10}  {'fastest':>10}  {'slowest':>10}"
    for contender in group.contenders:
        yield f"  {_row(contender)}"
        if contender.failures:
            yield f"             first failure: {contender.failures[0]}"
    for goal in group.goals:
        yield f"  goal: {_goal_line(group, goal)}"
    yield ""


def _row(contender: Contender) -> str:
    ok = f"{len(contender.seconds)}/{contender.attempts}"
    if not contender.seconds:
        return f"{ok:>9}  {'-':>10}  {'-':>10}  {'-':>10}  {contender.name}"
    numbers = (contender.median_ms or 0.0, min(contender.seconds) * 1000, max(contender.seconds) * 1000)
    return f"{ok:>9}  " + "  ".join(f"{number:7.2f} ms" for number in numbers) + f"  {contender.name}"


def _goal_line(group: Group, goal: Goal) -> str:
    measured = measure(group, goal)
    if goal.at_most_ratio is not None:
        wanted, shown = f"at most {goal.at_most_ratio:g}×", "{:.2f}×"
    elif goal.at_least_times_faster is not None:
        wanted, shown = f"at least {goal.at_least_times_faster:g} times faster", "{:.1f} times"
    else:
        wanted, shown = f"at most {goal.at_most_added_ms:g} ms added", "{:.2f} ms"
    if measured is None:
        return f"{goal.contender} against {goal.against}, {wanted}: not measured"
    verdict = "met" if met(goal, measured) else "MISSED"
    return f"{goal.contender} against {goal.against}, {wanted}: {shown.format(measured)}, {verdict}"


def measure(group: Group, goal: Goal) -> float | None:
    """The number that a goal is about, or None when one side has no successful trial."""
    own, other = group.median_ms(goal.contender), group.median_ms(goal.against)
    if own is None or other is None:
        return None
    if goal.at_most_ratio is not None:
        return own / other
    if goal.at_least_times_faster is not None:
        return other / own
    return own - other


def met(goal: Goal, measured: float) -> bool:
    """Whether what was measured reaches the goal."""
    if goal.at_most_ratio is not None:
        return measured <= goal.at_most_ratio
    if goal.at_least_times_faster is not None:
        return measured >= goal.at_least_times_faster
    return goal.at_most_added_ms is not None and measured <= goal.at_most_added_ms


def document(groups: Sequence[Group]) -> dict[str, object]:
    """Everything as JSON: every trial, not only the medians."""
    return {
        group.title: {
            "contenders": {
                contender.name: {
                    "ok": len(contender.seconds),
                    "attempts": contender.attempts,
                    "median_ms": contender.median_ms,
                    "seconds": contender.seconds,
                    "failures": contender.failures,
                }
                for contender in group.contenders
            },
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
        "measured": measured,
        "met": None if measured is None else met(goal, measured),
    }
