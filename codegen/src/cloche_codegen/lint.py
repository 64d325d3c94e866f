"""House rules over all schemas, before anything is emitted."""

from .load import Library


def check(library: Library) -> None:
    """Raise SchemaError with every broken rule."""
