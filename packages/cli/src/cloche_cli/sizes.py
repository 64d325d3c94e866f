"""Sizes and times as people read them."""

from datetime import datetime

_UNITS = ("B", "KiB", "MiB", "GiB")
_STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def shown_size(size: int) -> str:
    """A number of bytes with its unit."""
    step = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    value = size / 1024**step
    return f"{value:.0f} {_UNITS[step]}" if step == 0 or value >= 100 else f"{value:.1f} {_UNITS[step]}"


def shown_span(seconds: float) -> str:
    """A span of time in its largest whole unit."""
    whole = max(int(seconds), 0)
    return next((f"{whole // step} {unit}" for step, unit in _STEPS if whole >= step), "0 s")


def ago(text: str | None, now: datetime) -> str:
    """How long a moment has passed; `-` where it is not known."""
    moment = _moment(text)
    return "-" if moment is None else f"{shown_span((now - moment).total_seconds())} ago"


def ahead(text: str | None, now: datetime) -> str:
    """How long a moment is ahead; `-` where it is not known."""
    moment = _moment(text)
    return "-" if moment is None else f"in {shown_span((moment - now).total_seconds())}"


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if text is not None else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
