"""The reference page of the Python SDK: every public name, its arguments, what it gives back and what it raises.

It is read from the sources while the site is built. A public name without a docstring, and one that tells of an
argument that is not there, is an error here.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cloche_codegen.emit.sync import PREFIX, SDK, wanted

_Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_SECTION = re.compile(r"^(Args|Raises|Returns|Yields|Source|Example):(.*)$")
# Words that mean the same in every call that does not say otherwise.
_EVERYWHERE = {
    "api_key": "Instead of what is configured.",
    "base_url": "Instead of what is configured.",
    "code": "The program.",
    "command": "A line for `sh -c`.",
    "context": "The interpreter, or its id.",
    "data": "What is sent or written; text goes as UTF-8.",
    "doors": "Settings, clock and providers in place of those of this process.",
    "envs": "Variables, on top of those of the sandbox.",
    "on_stderr": "Called with each piece of it, as it comes.",
    "on_stdout": "Called with each piece of it, as it comes.",
    "path": "A path in the sandbox; a relative one starts at the home of its user.",
    "pid": "The number of the command, from its handle or from `list`.",
    "provider": "Instead of what is configured.",
    "region": "For providers that have several.",
    "sandbox_domain": "Accepted for compatibility, not used.",
    "sandbox_id": "The id, plain or as `provider:id`.",
    "task_id": "The id, from `start`.",
}
_LIFETIME = "Seconds to live from now, 1 to 86400."
_ENTRY = re.compile(r"^ {4}([*\w][\w ,*]*): (.*)$")


@dataclass(frozen=True)
class _Doc:
    """A docstring in its parts."""

    text: str
    args: dict[str, str]
    raises: dict[str, str]


def write(repository: Path) -> str:
    """Return the page as Markdown, to be put below its headline.

    Raises:
        LookupError: a public name, or an argument that is told of, is not there, or has no docstring.
    """
    facade = repository / SDK / "__init__.py"
    homes = _homes(ast.parse(facade.read_text(encoding="utf-8")))
    trees = {home: ast.parse((repository / SDK / f"{home}.py").read_text(encoding="utf-8")) for home in homes.values()}
    found = {name: _find(name, trees[home]) for name, home in homes.items()}
    order = sorted(found, key=lambda name: (name != "AsyncSandbox", not name.startswith(PREFIX), name))
    return "\n".join(line for name in order for line in _entry(found[name]))


def _homes(facade: ast.Module) -> dict[str, str]:
    """Which module each public name is from, but for the synchronous ones, which are copies."""
    found: dict[str, str] = {}
    for node in ast.walk(facade):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and not node.module.startswith("_gen"):
            found.update({alias.name: node.module for alias in node.names})
    return found


def _find(name: str, tree: ast.Module) -> ast.ClassDef | _Method:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise LookupError(f"{SDK}: the public name {name} is not where its facade says")


def _entry(node: ast.ClassDef | _Method) -> list[str]:
    if not isinstance(node, ast.ClassDef):
        return [f"## {node.name}()", "", *_callable(node, node.name)]
    plain = node.name.removeprefix(PREFIX)
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    public = [each for each in methods if not each.name.startswith("_") and wanted(each)]
    fields = [*_fields(node), *(_property(each) for each in public if _is_property(each))]
    also = [f"And `{node.name}`.", ""] if node.name != plain else []
    lines = [f"## {plain}", "", *also, _sync(_doc(node, node.name).text), ""]
    lines += _table(["Field", "Type", "Default", "Meaning"], fields)
    for each in public:
        if not _is_property(each):
            lines += [f"### {plain}.{each.name}()", "", *_callable(each, f"{node.name}.{each.name}")]
    return lines


def _callable(node: _Method, name: str) -> list[str]:
    doc = _doc(node, name)
    returns = ast.unparse(node.returns) if node.returns else "None"
    lines = [_sync(doc.text), ""]
    if returns != "None":
        lines += [f"Gives `{_sync(returns)}`.", ""]
    lines += _table(["Argument", "Type", "Default", "Meaning"], _arguments(node, name, doc))
    if doc.raises:
        lines += ["Raises:", "", *(f"- {_code(names)}: {text}" for names, text in doc.raises.items()), ""]
    return lines


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def _table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """A table without the columns that say nothing."""
    kept = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    if not rows:
        return []
    lines = [[columns[index] for index in kept], ["---"] * len(kept), *([row[index] for index in kept] for row in rows)]
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]


def _arguments(node: _Method, name: str, doc: _Doc) -> list[list[str]]:
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [*zip(plain, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    pairs = [(each, default) for each, default in pairs if each.arg not in ("self", "cls")]
    known = {each.arg for each, _ in pairs}
    if lost := sorted(set(doc.args) - known):
        raise LookupError(f"{SDK}: {name} tells of arguments that it does not have: {', '.join(lost)}")
    return [
        [
            f"`{each.arg}`",
            _type(ast.unparse(each.annotation)) if each.annotation else "",
            "" if default is None else f"`{ast.unparse(default)}`",
            doc.args.get(each.arg) or _meaning(name, each.arg),
        ]
        for each, default in pairs
    ]


def _meaning(name: str, argument: str) -> str:
    if argument == "timeout" and ".set_timeout" in name:
        return _LIFETIME
    return _EVERYWHERE.get(argument, "")


def _fields(node: ast.ClassDef) -> list[list[str]]:
    found: list[list[str]] = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            default = "" if each.value is None else ast.unparse(each.value)
            shown = "" if not default or "(" in default.removeprefix("()") else f"`{default}`"
            found.append([f"`{each.target.id}`", _type(ast.unparse(each.annotation)), shown, ""])
    return found


def _property(node: _Method) -> list[str]:
    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return [f"`{node.name}`", _type(ast.unparse(node.returns)) if node.returns else "", "", _cell(text)]


def _is_property(node: _Method) -> bool:
    return any(ast.unparse(each) == "property" for each in node.decorator_list)


def _type(text: str) -> str:
    return _cell(f"`{_sync(text)}`")


def _sync(text: str) -> str:
    """Names as they are in plain code: the page is about both."""
    return re.sub(rf"\b{PREFIX}(?=[A-Z])", "", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _doc(node: ast.ClassDef | _Method, name: str) -> _Doc:
    found = ast.get_docstring(node)
    if not found:
        raise LookupError(f"{SDK}: the public name {name} has no docstring")
    parts: dict[str, list[str]] = {"": []}
    current = ""
    for line in found.splitlines():
        if header := _SECTION.match(line):
            current = header[1]
            parts[current] = [header[2].strip()]
        else:
            parts[current].append(line)
    text = "\n".join([*parts[""], *_prose(parts, "Returns"), *_prose(parts, "Yields")]).strip()
    return _Doc(text, _entries(parts.get("Args", []), split=True), _entries(parts.get("Raises", []), split=False))


def _prose(parts: dict[str, list[str]], name: str) -> list[str]:
    words = " ".join(line.strip() for line in parts.get(name, [])).strip()
    return ["", f"{name}: {words}"] if words else []


def _entries(lines: list[str], *, split: bool) -> dict[str, str]:
    """The entries of a section. Several names that share a text stay one entry, or each get it."""
    found: list[tuple[str, str]] = []
    for line in lines:
        if entry := _ENTRY.match(line):
            found.append((entry[1], entry[2]))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    pairs = [(name.strip("* "), text) for names, text in found for name in (names.split(",") if split else [names])]
    return {name: _cell(text[0].upper() + text[1:]) for name, text in pairs}
