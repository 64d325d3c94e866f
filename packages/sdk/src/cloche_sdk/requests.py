"""Requests to providers, built from plain arguments and checked before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cloche_contract.errors import InvalidArgument

__all__ = ["build", "listed"]

Request = TypeVar("Request", bound=BaseModel)

# pydantic's names for a broken rule, as JSON Schema calls them, and where its limit stands.
_RULES = {
    "greater_than_equal": ("minimum", "ge"),
    "less_than_equal": ("maximum", "le"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", ""),
    "literal_error": ("enum", ""),
}


def listed(name: str, values: Sequence[str]) -> list[str]:
    """A list argument. One text is a sequence of letters, and never what is meant.

    Raises:
        InvalidArgument: it is one text.
    """
    if isinstance(values, str):
        raise InvalidArgument(field=name, rule="type")
    return list(values)


def build(model: type[Request], **values: object) -> Request:
    """A request of the given values; None means that a value was not given.

    Raises:
        InvalidArgument: names the argument and the rule, never the value.
    """
    try:
        return model.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "arguments"
        rule, key = _RULES.get(first["type"], ("type", ""))
        limit = first.get("ctx", {}).get(key)
        raise InvalidArgument(field=name, rule=rule, limit=limit if isinstance(limit, int) else None) from None
