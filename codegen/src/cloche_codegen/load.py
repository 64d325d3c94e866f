"""Read the schema files, find what a `$ref` means, and remember what was read."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

JsonObject = dict[str, Any]


class SchemaError(Exception):
    """A schema file breaks a rule; the text names the file and the rule."""


@dataclass(frozen=True)
class Document:
    """One schema file."""

    path: str
    data: JsonObject
    sha256: str

    @property
    def stem(self) -> str:
        return Path(self.path).stem

    @property
    def defs(self) -> JsonObject:
        return cast(JsonObject, self.data.get("$defs", {}))


@dataclass
class Library:
    """All schema files, by path relative to `schemas/`."""

    root: Path
    documents: dict[str, Document]
    contract_version: str
    read: dict[str, str] = field(default_factory=dict[str, str])

    def document(self, path: str) -> Document:
        if path not in self.documents:
            raise SchemaError(f"{path}: no such schema file")
        return self.documents[path]

    def under(self, folder: str) -> list[Document]:
        return [doc for path, doc in sorted(self.documents.items()) if path.startswith(f"{folder}/")]

    def resolve(self, ref: str, base: str) -> tuple[str, str, JsonObject]:
        """Return (file, definition name, node) of a reference found in the file `base`."""
        file, _, pointer = ref.partition("#")
        path = base if not file else _normal(f"{Path(base).parent.as_posix()}/{file}")
        parts = [part for part in pointer.split("/") if part]
        node: Any = self.document(path).data
        for part in parts:
            if not isinstance(node, dict) or part not in node:
                raise SchemaError(f"{base}: {ref} leads nowhere")
            node = cast(JsonObject, node)[part]
        return path, parts[-1] if parts else "", cast(JsonObject, node)


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise SchemaError(f"{path}: leaves schemas/")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found:
            raise SchemaError(f"the key {key} is there twice")
        found[key] = value
    return found


def load(root: Path) -> Library:
    """Read every file below `schemas/`."""
    documents: dict[str, Document] = {}
    for file in sorted(root.rglob("*.json")):
        path = file.relative_to(root).as_posix()
        raw = file.read_bytes()
        try:
            data = json.loads(raw, object_pairs_hook=_unique)
        except (ValueError, SchemaError) as exc:
            raise SchemaError(f"{path}: {exc}") from exc
        if not isinstance(data, dict):
            raise SchemaError(f"{path}: the root is not an object")
        documents[path] = Document(path, cast(JsonObject, data), hashlib.sha256(raw).hexdigest())
    version = (root / "CONTRACT_VERSION").read_text(encoding="utf-8").strip()
    return Library(root, documents, version)


def walk(node: Any, where: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Every object inside a schema, with the path to it; values of examples are not schemas."""
    if isinstance(node, dict):
        mapping = cast(JsonObject, node)
        yield where, mapping
        for key, value in mapping.items():
            if key not in ("examples", "x-counterexamples", "default", "const", "enum"):
                yield from walk(value, f"{where}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(cast("list[Any]", node)):
            yield from walk(value, f"{where}/{index}")


def properties(node: Mapping[str, Any]) -> Mapping[str, JsonObject]:
    return cast("Mapping[str, JsonObject]", node.get("properties", {}))
