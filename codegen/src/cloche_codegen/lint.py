"""House rules over all schemas, before anything is emitted."""

from cloche_codegen.load import Library


def check(library: Library) -> None:
    """Raise SchemaError with every broken rule."""
