"""A pandas DataFrame as columns of plain values, where it is small enough to travel."""

from __future__ import annotations

import math
import sys
from typing import Any

from . import limits


def table_of(value: object) -> dict[str, list[object]] | None:
    """Return columns by name; None for what is no frame, or has too many cells."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, getattr(pandas, "DataFrame", ())):
        return None
    frame: Any = value
    if frame.size > limits.TABLE_CELLS or not frame.columns.is_unique:
        return None
    return {str(name): [_cell(each) for each in frame[name].tolist()] for name in frame.columns}


def _cell(value: Any) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    form = getattr(value, "isoformat", None)
    if callable(form):
        # NaT has the method too.
        return None if value != value else form()
    return str(value)
