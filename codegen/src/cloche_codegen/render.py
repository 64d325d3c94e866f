"""Jinja templates with the two filters that text in Python sources needs."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined


def _quoted(value: Any) -> str:
    """A Python literal; JSON strings are valid Python ones."""
    if value is None or isinstance(value, bool | float | int):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        inner = ", ".join(_quoted(item) for item in value)  # pyright: ignore[reportUnknownVariableType] - values of JSON
        return f"({inner},)" if len(value) == 1 else f"({inner})"  # pyright: ignore[reportUnknownArgumentType] - JSON
    raise TypeError(type(value).__name__)


@cache
def _environment() -> Environment:
    folder = files("cloche_codegen") / "templates"
    sources = {item.name: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".j2")}
    environment = Environment(
        loader=DictLoader(sources),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["q"] = _quoted
    return environment


def render(template: str, **values: Any) -> str:
    """Fill one template."""
    return _environment().get_template(template).render(**values)
