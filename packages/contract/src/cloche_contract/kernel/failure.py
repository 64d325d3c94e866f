"""Errors as data: the base of the catalogue classes, and the object that a failed call returns."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

Retry: TypeAlias = Literal["never", "safe", "backoff"]
DetailValue: TypeAlias = "str | int | bool | Sequence[str] | None"

# What a broken rule means, in words that hold no value. A number after it is the limit that the schema sets.
RULES: Mapping[str, str] = {
    "type": "has the wrong type",
    "required": "is required",
    "additionalProperties": "is not an argument of this tool",
    "enum": "is not one of the allowed values",
    "minimum": "must be at least",
    "maximum": "must be at most",
    "minLength": "is shorter than allowed; characters at least:",
    "maxLength": "is longer than allowed; characters at most:",
    "minItems": "has too few entries; at least:",
    "maxItems": "has too many entries; at most:",
    "maxProperties": "has too many entries; at most:",
    "propertyNames": "has an entry whose name is not allowed",
    "pattern": "does not have the required form",
    "maxBytes": "is longer than allowed; bytes at most:",
    "totalBytes": "is longer than allowed in all; bytes at most:",
    "parentSegment": "must not have a .. segment",
    "base64": "is not base64",
    "unicode": "has characters that are not valid Unicode",
}


class ClocheError(Exception):
    """Base of every error that crosses a package border.

    Text is static: `message` and `suggestion` belong to the class, `details` is closed and holds no foreign text.
    The cause (`raise … from exc`) is for the debug log and never leaves the process.
    """

    code: ClassVar[str] = "internal_error"
    error_code: ClassVar[str] = "E9000"
    category: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "internal_error"
    message: ClassVar[str] = "Something failed inside the server."
    suggestion: ClassVar[str] = "Try again; if it fails again, look at the log of this process and report it."
    http_status: ClassVar[int] = 500
    connect_code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"
    detail_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self, details: Mapping[str, DetailValue] | None = None) -> None:
        self.details: Mapping[str, DetailValue] = {k: v for k, v in (details or {}).items() if v is not None}
        super().__init__(self.text)

    @property
    def text(self) -> str:
        """What happened, in one sentence made of static parts."""
        field, rule = self.details.get("field"), self.details.get("rule")
        if isinstance(field, str) and isinstance(rule, str):
            limit = self.details.get("limit")
            number = f" {limit}" if isinstance(limit, int) else ""
            return f"{field or 'arguments'}: {RULES.get(rule, 'is not valid')}{number}."
        cause = self._cause()
        return f"{self.message} {cause[0]}" if cause else self.message

    @property
    def hint(self) -> str:
        """What to do about it."""
        cause = self._cause()
        return cause[1] if cause else self.suggestion

    def _cause(self) -> tuple[str, str] | None:
        if "cause" not in self.details:
            return None
        from cloche_contract._gen.errors import CAUSES  # the generated table imports this module

        found: Mapping[Any, tuple[str, str]] = CAUSES
        return found.get(self.details["cause"])

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _rebuild, (type(self), dict(self.details))


def _rebuild(kind: type[ClocheError], details: dict[str, DetailValue]) -> ClocheError:
    error = kind.__new__(kind)
    ClocheError.__init__(error, details)
    return error


def envelope(toolset: str, error: ClocheError) -> dict[str, Any]:
    """Return the object that a failed call of this tool set answers, in the shape that the set is published with."""
    from cloche_contract.kernel.registry import published_set

    details = {key: list(v) if isinstance(v, tuple) else v for key, v in error.details.items()}
    status = details.pop("http_status", None)
    found: dict[str, Any] = {key: getattr(error, key) for key in ("code", "error_code", "category")}
    found |= {"suggestion": error.hint, **({} if status is None else {"http_status": status})}
    if published_set(toolset).error_shape == "error-object":
        return {"error": {"kind": error.kind, "message": error.text, "details": {**details, **found}}}
    return {"error": error.text, **found, **({"details": details} if details else {})}


def from_code(code: str, details: Mapping[str, DetailValue] | None = None) -> ClocheError | None:
    """Return the catalogue error of that code, for whoever reads one from a wire; None when it is not known.

    Details that the catalogue does not list are dropped.
    """
    from cloche_contract._gen.errors import ERRORS

    kind = ERRORS.get(code)
    if kind is None:
        return None
    kept = {key: value for key, value in (details or {}).items() if key in kind.detail_keys}
    return _rebuild(kind, kept)
