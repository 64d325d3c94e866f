"""Notebook habits in code that is not Python: `!command`, `%pip`, `%matplotlib`. Touched only where Python fails."""

from __future__ import annotations

import ast
import re
from typing import Final

_SHELL_LINE: Final = re.compile(r"(\s*)!(.+)\Z")
_MAGIC_LINE: Final = re.compile(r"(\s*)%(\w+)(.*)\Z")
_AS_MODULE: Final = frozenset({"pip", "uv"})
_IGNORED: Final = frozenset({"matplotlib", "config", "load_ext", "autoreload"})


def without_shellisms(code: str) -> str:
    """Return code with such lines written in Python; unchanged when it parses already or still does not."""
    if not _may_have(code):
        return code
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        pass
    else:
        return code
    changed = "\n".join(_rewrite(line) for line in code.split("\n"))
    try:
        compile(changed, "<notebook>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return code
    return changed


def _may_have(code: str) -> bool:
    return any(line.lstrip()[:1] in ("!", "%") for line in code.split("\n") if line)


def _rewrite(line: str) -> str:
    if found := _SHELL_LINE.match(line):
        return f"{found[1]}__import__('os').system({found[2]!r}) and None"
    if found := _MAGIC_LINE.match(line):
        indent, name, rest = found.groups()
        if name in _AS_MODULE:
            command = f"{name}{rest}"
            return f"{indent}__import__('os').system({command!r}) and None"
        if name in _IGNORED:
            return f"{indent}pass"
    return line
