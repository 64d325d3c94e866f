"""Names that are imported at their first use, so that `import cloche_contract` stays cheap."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def module_attribute(module: str, name: str) -> Any:
    """Import `module` and return what it calls `name`."""
    return getattr(import_module(module), name)


def attribute(owner: str, where: Mapping[str, str], name: str) -> object:
    """Serve a module's `__getattr__` from a table of name to module, and remember the answer."""
    if name not in where:
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    value = module_attribute(where[name], name)
    setattr(sys.modules[owner], name, value)
    return value
