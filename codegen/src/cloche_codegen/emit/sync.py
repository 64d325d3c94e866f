"""The synchronous SDK, read from the asynchronous one: signatures copied, every call on one portal."""

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from cloche_codegen.load import SchemaError
from cloche_codegen.render import render

SDK = "packages/sdk/src/cloche_sdk"
PREFIX = "Async"
# A method whose signature mentions one of these is for the SDK itself, not for its users.
INNER = frozenset({"AgentChannel", "AsyncGenerator", "ProcessReader", "ProviderPool", "Reference", "SandboxLink"})

_Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Module:
    """One module of the SDK: its tree, and where each of its names is from."""

    name: str
    tree: ast.Module
    homes: dict[str, str] = field(default_factory=dict[str, str])
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])


def emit(repository: Path) -> dict[str, tuple[str, list[str]]]:
    """Return `sync.py`; nothing where there is no SDK."""
    first = repository / SDK / "sandbox.py"
    if not first.is_file():
        return {}
    modules: dict[str, _Module] = {}
    _read(repository, "sandbox", modules)
    found = [(module, node) for module in modules.values() for node in module.classes.values()]
    # What others hold comes first, so that each class is there when it is used.
    found.sort(key=lambda pair: (pair[1].name == "AsyncSandbox", pair[1].name))
    names: dict[str, str] = {}
    rows = [_class(module, node, names) for module, node in found]
    for module, node in found:
        names[node.name] = f"cloche_sdk.{module.name}"
    imports = [f"from {home} import {name}" for name, home in sorted(names.items())]
    sources = sorted({f"{SDK}/{module.name}.py" for module, _ in found})
    exported = sorted(node.name.removeprefix(PREFIX) for _, node in found)
    labels = ", ".join(Path(source).stem for source in sources)
    text = render("sync.py.j2", sources=labels, imports=imports, classes=rows, exported=exported)
    return {"sync.py": (text, sources)}


def _read(repository: Path, name: str, modules: dict[str, _Module]) -> None:
    tree = ast.parse((repository / SDK / f"{name}.py").read_text(encoding="utf-8"))
    module = _Module(name, tree)
    modules[name] = module
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            home = f"cloche_sdk.{node.module}" if node.level else str(node.module)
            for alias in node.names:
                module.homes[alias.asname or alias.name] = home
                if alias.name.startswith(PREFIX) and node.level and str(node.module) not in modules:
                    _read(repository, str(node.module), modules)
        elif isinstance(node, ast.ClassDef):
            module.homes[node.name] = f"cloche_sdk.{name}"
            if node.name.startswith(PREFIX):
                module.classes[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    module.homes[target.id] = f"cloche_sdk.{name}"


def _class(module: _Module, node: ast.ClassDef, names: dict[str, str]) -> dict[str, object]:
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        "name": node.name.removeprefix(PREFIX),
        "source": node.name,
        "doc": _docstring(node),
        "children": _children(methods),
        "methods": [_method(module, node.name, each, names) for each in methods if wanted(each)],
    }


def _docstring(node: ast.ClassDef | _Method) -> str:
    found = ast.get_docstring(node)
    if not found:
        raise SchemaError(f"{SDK}: {node.name} has no docstring to copy")
    return found if "\n" not in found else f"{found}\n"


def _children(methods: list[_Method]) -> list[dict[str, str]]:
    """Attributes that `__init__` makes of asynchronous classes."""
    found: list[dict[str, str]] = []
    for node in ast.walk(next(each for each in methods if each.name == "__init__")):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            target, made = node.targets[0], node.value.func.id
            if isinstance(target, ast.Attribute) and made.startswith(PREFIX) and not target.attr.startswith("_"):
                found.append({"attribute": target.attr, "name": made.removeprefix(PREFIX)})
    return found


def _signature_names(method: _Method) -> set[str]:
    parts: list[ast.AST] = [method.args, *([method.returns] if method.returns else [])]
    found = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                found |= {node.value} & INNER
    return found


def wanted(method: _Method) -> bool:
    """Whether a method is for the users of the SDK, not for the SDK itself."""
    public = not method.name.startswith("_") or method.name in ("__aenter__", "__aexit__")
    return public and not _signature_names(method) & INNER


_RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__"}


def _method(module: _Module, owner: str, method: _Method, names: dict[str, str]) -> list[str]:
    for name in _signature_names(method):
        if name in module.homes and not name.startswith(PREFIX):
            names[name] = module.homes[name]
    decorators = [ast.unparse(each) for each in method.decorator_list]
    returns = ast.unparse(method.returns) if method.returns else "None"
    lines = [f"@{each}" for each in decorators]
    name = _RENAMED.get(method.name, method.name)
    lines.append(f"def {name}({ast.unparse(method.args)}) -> {returns.replace(PREFIX, '')}:")
    lines += [f"    {line}" if line else "" for line in _quoted(method)]
    return lines + [f"    {line}" for line in _body(owner, method, decorators, returns)]


def _quoted(method: _Method) -> list[str]:
    if method.name == "__aenter__":
        return ['"""Use it in a with block."""']
    if method.name == "__aexit__":
        return ['"""As the asynchronous one does at the end of its block."""']
    text = _docstring(method)
    return [*f'"""{text}'.split("\n")[:-1], '"""'] if text.endswith("\n") else [f'"""{text}"""']


def _body(owner: str, method: _Method, decorators: list[str], returns: str) -> list[str]:
    bound = "classmethod" in decorators or "staticmethod" in decorators
    target = f"{owner}.{method.name}" if bound else f"self._wrapped.{method.name}"
    if method.name == "__aenter__":
        return ["_PORTAL.call(self._wrapped.__aenter__)", "return self"]
    if "property" in decorators:
        return [f"return {target}"]
    arguments = ", ".join(_arguments(method, "staticmethod" in decorators))
    if isinstance(method, ast.AsyncFunctionDef):
        call = f"_PORTAL.call({', '.join(filter(None, [target, arguments]))})"
    else:
        call = f"{target}({arguments})"
    if returns.startswith(PREFIX):
        made = "cls" if returns == owner and "classmethod" in decorators else returns.removeprefix(PREFIX)
        return [f"return {made}({call})"]
    return [call if returns == "None" else f"return {call}"]


def _arguments(method: _Method, static: bool) -> list[str]:
    plain = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
    return (plain if static else plain[1:]) + [f"{each.arg}={each.arg}" for each in method.args.kwonlyargs]
