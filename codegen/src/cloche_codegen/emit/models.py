"""Pydantic models of every schema, made by datamodel-code-generator in a folder of its own."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from cloche_codegen.ir import ToolSet
from cloche_codegen.load import Document, JsonObject, Library

OPTIONS = [
    "--ignore-pyproject",
    "--input-file-type",
    "jsonschema",
    "--output-model-type",
    "pydantic_v2.BaseModel",
    "--target-python-version",
    "3.10",
    "--enum-field-as-literal",
    "all",
    "--use-annotated",
    "--use-title-as-name",
    "--use-schema-description",
    "--use-field-description",
    "--strict-types",
    "int",
    "bool",
    "str",
    "--strict-nullable",
    "--extra-fields",
    "forbid",
    "--collapse-root-models",
    "--skip-root-model",
    "--use-exact-imports",
    "--use-missing-sentinel",
    "--use-type-alias",
    "--target-pydantic-version",
    "2.14",
    "--field-extra-keys",
    "x-disclosure",
    "x-unit",
    "--disable-timestamp",
    "--formatters",
    "builtin",
]

_FOLDERS = ("common", "lifecycle", "provider", "agent", "http")


def stage(library: Library, node: Any, base: str) -> Any:
    """Inline references to everything but titled objects, which become classes of their own."""
    if isinstance(node, list):
        return [stage(library, item, base) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    mapping = cast(JsonObject, node)
    if isinstance(mapping.get("$ref"), str):
        path, name, target = library.resolve(mapping["$ref"], base)
        if target.get("type") == "object" and "properties" in target:
            return {"$ref": _relative(base, path, name), **{k: v for k, v in mapping.items() if k == "description"}}
        beside = {key: value for key, value in mapping.items() if key != "$ref"}
        return stage(library, {**target, **beside}, path)
    staged = {key: value if key in _VALUES else stage(library, value, base) for key, value in mapping.items()}
    # Times stay the strings that the wire carries; whoever needs a date parses one.
    if staged.get("format") == "date-time":
        del staged["format"]
    return staged


_VALUES = ("default", "const", "enum", "examples", "x-counterexamples")


def _staged_path(path: str) -> str:
    return path.removeprefix("tools/")


def _relative(base: str, path: str, name: str) -> str:
    if base == path:
        return f"#/$defs/{name}"
    return f"{'../' * _staged_path(base).count('/')}{_staged_path(path)}#/$defs/{name}"


def _wanted(library: Library, sets: list[ToolSet]) -> list[Document]:
    folders = (*_FOLDERS, *(f"tools/{each.name}" for each in sets))
    return [doc for folder in folders for doc in library.under(folder)]


def _staged(library: Library, doc: Document) -> JsonObject:
    objects = {
        name: stage(library, node, doc.path)
        for name, node in doc.defs.items()
        if node.get("type") == "object" and "properties" in node
    }
    return {"$schema": doc.data["$schema"], "title": doc.data["title"], "$defs": objects}


def emit(library: Library, sets: list[ToolSet], prefix: str) -> dict[str, tuple[str, list[str]]]:
    """Return text and owning schemas by path below `prefix`."""
    found: dict[str, tuple[str, list[str]]] = {}
    documents = [(doc, _staged(library, doc)) for doc in _wanted(library, sets)]
    documents = [(doc, staged) for doc, staged in documents if staged["$defs"]]
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "in", Path(scratch) / "out"
        for doc, staged in documents:
            file = source / _staged_path(doc.path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(staged), encoding="utf-8")
        _run(["--input", str(source), "--output", str(target), *OPTIONS])
        for doc, _ in documents:
            path = str(Path(_staged_path(doc.path)).with_suffix(".py"))
            text = (target / path).read_text(encoding="utf-8")
            found[f"{prefix}/{path}"] = (_titled(text, doc), [doc.path])
    return found


def _run(arguments: list[str]) -> None:
    """In a process of its own: the generator takes over signals, and reads settings of where it runs."""
    command = [sys.executable, "-X", "utf8", "-m", "datamodel_code_generator", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"datamodel-code-generator failed: {done.stderr}")


def _titled(text: str, doc: Document) -> str:
    """Put a docstring where the generator of the models puts a comment, and build no validator before its first use."""
    _, _, body = text.partition("from __future__ import annotations")
    body = body.replace("ConfigDict(\n", "ConfigDict(\n        defer_build=True,\n")
    return f'"""Generated from schemas/{doc.path}; do not edit."""\n\nfrom __future__ import annotations{body}'
