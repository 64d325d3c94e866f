"""The gate: the published schema decides what gets in and what gets out, pydantic carries what passed.

Messages are made of the path and the name of the rule. They never hold a value, because jsonschema's own text does.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cloche_contract.kernel.checks import broken_check
from cloche_contract.kernel.quick import Accepts, acceptor, compiled
from cloche_contract.kernel.registry import UnknownTool, models, published_set

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
    from pydantic import BaseModel

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")
_LIMITS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties"})


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> "Iterator[ValidationError]":
    if isinstance(instance, str) and not compiled(pattern)(instance):
        from jsonschema.exceptions import ValidationError

        yield ValidationError("pattern")


def _properties(validator: Any, properties: Any, instance: Any, schema: Any) -> "Iterator[ValidationError]":
    if not isinstance(instance, dict):
        return
    known, acceptors = _ACCEPTORS.get(id(properties), (None, {}))
    if known is not properties:
        acceptors = {name: acceptor(node) or _accept_nothing for name, node in properties.items()}
        _ACCEPTORS[id(properties)] = properties, acceptors
    mapping = cast("dict[str, Any]", instance)
    for name, accepts in acceptors.items():
        if name in mapping and not accepts(mapping[name]):
            yield from validator.descend(mapping[name], properties[name], path=name, schema_path=name)


def _accept_nothing(value: Any) -> bool:
    return False


# By identity of the properties, which live as long as the published sets: for ever.
_ACCEPTORS: dict[int, tuple[object, dict[str, Accepts]]] = {}


def _is_integer(checker: Any, instance: Any) -> bool:
    # 1.0 is an integer to JSON Schema and not to the models; the stricter one wins.
    return isinstance(instance, int) and not isinstance(instance, bool)


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType] - untyped upstream

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    make = cast("Callable[..., Any]", extend)
    return make(Draft202012Validator, {"pattern": _pattern, "properties": _properties}, type_checker=checker)


@cache
def _validator(toolset: str, tool: str, side: str) -> "Validator":
    entry = published_set(toolset).tool(tool)
    if entry is None:
        raise UnknownTool(tool)
    return cast("Validator", _validator_class()(entry[side]))


def prepare(toolset: str, tool: str) -> None:
    """Compile both schemas of a tool ahead of its first call."""
    _validator(toolset, tool, "inputSchema")
    _validator(toolset, tool, "outputSchema")


def _refuse(field: str, rule: str, limit: int | None = None) -> NoReturn:
    from cloche_contract._gen.errors import InvalidArgument

    raise InvalidArgument(field=field if _NAME.match(field) else "", rule=rule, limit=limit)


def _explain(error: "ValidationError") -> NoReturn:
    rule = str(error.validator)
    path = [str(part) for part in error.absolute_path]
    field = path[0] if path else ""
    schema_path = [str(part) for part in error.absolute_schema_path]
    if "propertyNames" in schema_path:
        rule = "propertyNames"
    instance, value = cast(Any, error.instance), cast(Any, error.validator_value)
    if rule == "required" and not path:
        field = next((name for name in value if name not in instance), "")
    elif rule == "additionalProperties" and not path:
        known = cast("Mapping[str, Any]", cast(Any, error.schema).get("properties", {}))
        field = next((str(name) for name in instance if name not in known), "")
    _refuse(field, rule, value if rule in _LIMITS and isinstance(value, int) else None)


def validate_arguments(toolset: str, tool: str, arguments: object) -> None:
    """Refuse arguments that the published schema, or a rule that it cannot say, does not allow.

    Raises:
        InvalidArgument: names the field and the rule.
        UnknownTool: the set has no such tool.

    Source: seed-000, "Input validation names the invalid field without echoing its value".
    """
    validator = _validator(toolset, tool, "inputSchema")
    for error in validator.iter_errors(cast(Any, arguments)):
        _explain(error)
    found = broken_check(published_set(toolset).checks[tool], cast("Mapping[str, Any]", arguments))
    if found:
        _refuse(*found)


def parse(toolset: str, tool: str, arguments: Mapping[str, Any]) -> "BaseModel":
    """Return the typed request of arguments that were validated."""
    from pydantic import ValidationError

    model = models(toolset, tool)[0]
    try:
        return cast("BaseModel", model.model_validate(arguments))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        field = str(first["loc"][0]) if first["loc"] else ""
    _refuse(field, "type")


def check_output(toolset: str, tool: str, structured: Mapping[str, Any]) -> None:
    """Hold back a result that does not fit the published schema.

    Raises:
        OutputMismatch: nothing of the result is in it.
    """
    from cloche_contract._gen.errors import OutputMismatch

    validator = _validator(toolset, tool, "outputSchema")
    if next(iter(validator.iter_errors(cast(Any, structured))), None) is not None:
        raise OutputMismatch
