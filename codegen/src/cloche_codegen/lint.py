"""House rules over all schemas, before anything is emitted. Each rule is a function, an id and a sentence."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as InvalidSchema
from jsonschema.exceptions import ValidationError

from cloche_codegen import examples, portable
from cloche_codegen.load import Document, JsonObject, Library, SchemaError, walk
from cloche_codegen.publish import inline

SHARED = ("common", "lifecycle", "provider", "agent", "layerstack", "http")
LEVELS = ("model", "operator", "internal", "secret")
Findings = Iterator[str]

_META = {"tools": "tool", "toolsets": "toolset", "errors": "errors", "config": "settings"}


def check(library: Library) -> None:
    """Raise SchemaError with a line for every broken rule."""
    found = list(_meta(library))
    if not found:
        found = [f"{name} {text}" for name, rule in RULES.items() for text in rule(library)]
    if found:
        raise SchemaError("\n".join(found))


def _validator(schema: JsonObject) -> Any:
    return Draft202012Validator(schema)


def _meta(library: Library) -> Findings:
    """Every file fits its meta-schema, and every x- keyword is known and well formed."""
    named = cast("dict[str, JsonObject]", library.document("meta/keywords.schema.json").data["properties"])
    keywords = {name: _validator(schema) for name, schema in named.items()}
    for path, doc in library.documents.items():
        folder = path.split("/")[0]
        if folder == "meta":
            continue
        meta = library.document(f"meta/{_META.get(folder, 'definitions')}.schema.json").data
        yield from _broken(path, _validator(meta), doc.data)
        if folder in ("tools", *SHARED):
            yield from _dialect(path, doc.data)
            for where, node in walk(doc.data):
                if not where.endswith("/properties"):
                    yield from _keywords(keywords, f"{path}{where}", node)


def _broken(path: str, validator: Any, value: Any) -> Findings:
    for error in cast("Iterator[ValidationError]", validator.iter_errors(value)):
        yield f"META {path}/{'/'.join(map(str, error.absolute_path))}: {error.message}"


def _dialect(path: str, schema: JsonObject) -> Findings:
    try:
        Draft202012Validator.check_schema(schema)
    except InvalidSchema as exc:
        yield f"META {path}: {exc.message}"


def _keywords(known: dict[str, Any], where: str, node: JsonObject) -> Findings:
    for key, value in node.items():
        if key.startswith("x-"):
            if key not in known:
                yield f"META {where}: {key} is no keyword of this repository"
            else:
                yield from _broken(f"{where}/{key}", known[key], value)


def _documents(library: Library) -> list[Document]:
    return [doc for folder in ("tools", *SHARED) for doc in library.under(folder)]


def _nodes(library: Library) -> Iterator[tuple[str, Document, str, JsonObject]]:
    """Every schema node with (its path, its file, the definition that holds it)."""
    for doc in _documents(library):
        for name, definition in doc.defs.items():
            for where, node in walk(definition):
                last = where.rsplit("/", 1)[-1]
                if last not in ("properties", "x-check", "x-content") and "/x-" not in where:
                    yield f"{doc.path}#{name}{where}", doc, name, node


def _properties(library: Library) -> Iterator[tuple[str, Document, str, str, JsonObject]]:
    """Every property, its references resolved, with (path, file, definition, name)."""
    for doc in _documents(library):
        for name, definition in doc.defs.items():
            for key, node in cast("dict[str, JsonObject]", definition.get("properties", {})).items():
                resolved = cast(JsonObject, inline(library, node, doc.path))
                yield f"{doc.path}#{name}.{key}", doc, name, key, resolved


def outside(doc: Document, definition: str) -> bool:
    """Whether values of this definition come from outside the process."""
    return doc.path.startswith(("agent/", "http/", "layerstack/")) or definition.endswith(("Input", "Request"))


def l01(library: Library) -> Findings:
    """Every object has a title and lives in $defs."""
    for path, _, name, node in _nodes(library):
        if "properties" in node and node.get("title") != name:
            yield f"{path}: an object with properties needs its own entry in $defs, with that name as title"


def l02(library: Library) -> Findings:
    """Every property has a description that ends in a full stop."""
    for path, _, _, _, node in _properties(library):
        if not str(node.get("description", "")).endswith("."):
            yield f"{path}: needs a description that ends in a full stop"


def l03(library: Library) -> Findings:
    """Every number has a unit."""
    for path, _, _, node in _nodes(library):
        if {"integer", "number"} & set(kinds(node)) and "x-unit" not in node:
            yield f"{path}: a number needs x-unit"


def kinds(node: JsonObject) -> list[str]:
    found = node.get("type", [])
    return cast("list[str]", found) if isinstance(found, list) else [cast(str, found)]


def l04(library: Library) -> Findings:
    """additionalProperties is always explicit."""
    for path, _, _, node in _nodes(library):
        if "object" in kinds(node) and "additionalProperties" not in node:
            yield f"{path}: an object says what additionalProperties are"


def l05(library: Library) -> Findings:
    """Every array, map and string that comes from outside has a maximum."""
    limits = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}
    for path, doc, name, node in _nodes(library):
        if not outside(doc, name) or "$ref" in node or "enum" in node or "const" in node or "propertyNames" in path:
            continue
        for kind in kinds(node):
            needed = limits.get(kind)
            if needed and needed not in node and "properties" not in node:
                yield f"{path}: comes from outside and needs {needed}"


def l06(library: Library) -> Findings:
    """Enums are named once, in common, lifecycle or agent."""
    seen: dict[tuple[str, ...], str] = {}
    for path, doc, _, node in _nodes(library):
        if "enum" not in node:
            continue
        key = tuple(sorted(map(str, node["enum"])))
        if not doc.path.startswith(("common/", "lifecycle/", "agent/")) or path.count("/") != 1:
            yield f"{path}: an enum is an entry of $defs in common, lifecycle or agent"
        elif key in seen:
            yield f"{path}: the same enum as {seen[key]}"
        seen[key] = path


def l07(library: Library) -> Findings:
    """Every listed error exists, and every catalogue error is used."""
    catalog = library.document("errors/catalog.json").data
    known = cast("dict[str, JsonObject]", catalog["errors"])
    used: set[str] = {name for name, node in known.items() if "used_by" in node}
    for doc in _documents(library):
        listed = list(doc.data.get("x-tool", {}).get("errors", []))
        for operation in [*doc.data.get("x-operations", []), *doc.data.get("x-routes", [])]:
            listed += [*operation.get("errors", []), *operation.get("statuses", {}).values()]
        yield from (f"{doc.path}: {code} is not in the catalogue" for code in listed if code not in known)
        used |= set(listed)
    yield from (f"errors/catalog.json: nothing uses {code}" for code in sorted(set(known) - used))
    codes = [node["code"] for node in known.values()]
    yield from (
        f"errors/catalog.json: {code} is there twice" for code in sorted({c for c in codes if codes.count(c) > 1})
    )
    for name, node in known.items():
        if node["category"] not in catalog["categories"]:
            yield f"errors/catalog.json: {name} has the unknown category {node['category']}"


def l08(library: Library) -> Findings:
    """What a result shows is below the ceiling of its set, or says why not."""
    for each in library.under("toolsets"):
        ceiling = LEVELS.index(each.data["disclosure_ceiling"])
        for doc in library.under(f"tools/{each.data['name']}"):
            for name, definition in doc.defs.items():
                if name.endswith("Output"):
                    yield from _above(library, doc.path, f"{doc.path}#{name}", definition, ceiling)


def _above(library: Library, base: str, path: str, node: JsonObject, ceiling: int) -> Findings:
    resolved = cast(JsonObject, inline(library, node, base))
    for where, inner in walk(resolved):
        for key, value in cast("dict[str, JsonObject]", inner.get("properties", {})).items():
            level = value.get("x-disclosure", "internal")
            if LEVELS.index(level) > ceiling and "x-disclosure-exception" not in value:
                yield f"{path}{where}.{key}: {level} is above the ceiling {LEVELS[ceiling]}"


def l10(library: Library) -> Findings:
    """The root of an input is an object."""
    for doc in library.under("tools"):
        for name, node in doc.defs.items():
            if name.endswith(("Input", "Output")) and node.get("type") != "object":
                yield f"{doc.path}#{name}: the root is not an object"


def l11(library: Library) -> Findings:
    """No untagged unions: anyOf is for null alone, oneOf needs a const in every branch."""
    for path, doc, _, node in _nodes(library):
        branches = cast("list[JsonObject]", node.get("anyOf", []))
        if branches and not (len(branches) == 2 and {"type": "null"} in branches):
            yield f"{path}: anyOf is only for one type or null"
        for branch in cast("list[JsonObject]", node.get("oneOf", [])):
            fields = cast(JsonObject, inline(library, branch, doc.path)).get("properties", {})
            if not any("const" in each for each in fields.values()):
                yield f"{path}: every branch of oneOf needs a const to tell it by"


def l12(library: Library) -> Findings:
    """Names of tools, their properties and what they share are lower case with underscores, 3 to 41 characters."""
    for path, doc, _, key, _ in _properties(library):
        # `id` is what the seed calls it in the records of the management set; no argument has that name.
        fits = portable.NAME.match(key) or key == "id"
        if not doc.path.startswith(("agent/", "http/", "layerstack/", "provider/")) and not fits:
            yield f"{path}: the name does not match {portable.NAME.pattern}"
    for doc in library.under("tools"):
        if doc.stem != doc.data["title"] or not portable.NAME.match(doc.stem):
            yield f"{doc.path}: file name and title are the name of the tool"


def l13(library: Library) -> Findings:
    """No description mentions another default than the schema sets."""
    for path, _, _, _, node in _properties(library):
        for said in portable.defaults_in(str(node.get("description", ""))):
            if "default" not in node or said != str(node["default"]):
                yield f"{path}: the description says default {said}"
    for doc in library.under("tools"):
        allowed = {
            str(node["default"]) for _, other, _, _, node in _properties(library) if other is doc and "default" in node
        }
        for said in portable.defaults_in(str(doc.data["description"])):
            if said not in allowed:
                yield f"{doc.path}: the description says default {said}"


def orders(library: Library) -> Findings:
    """The order of a set names exactly its tools."""
    for each in library.under("toolsets"):
        name = each.data["name"]
        listed, there = list(each.data["order"]), [doc.stem for doc in library.under(f"tools/{name}")]
        yield from (f"{each.path}: {tool} has no file" for tool in listed if tool not in there)
        yield from (f"{each.path}: {tool} is not in the order" for tool in there if tool not in listed)
        for doc in library.under(f"tools/{name}"):
            if doc.data["x-tool"]["set"] != name:
                yield f"{doc.path}: x-tool says another set"


RULES: dict[str, Callable[[Library], Findings]] = {
    "L01": l01,
    "L02": l02,
    "L03": l03,
    "L04": l04,
    "L05": l05,
    "L06": l06,
    "L07": l07,
    "L08": l08,
    "L09": examples.l09,
    "L10": l10,
    "L11": l11,
    "L12": l12,
    "L13": l13,
    "ORDER": orders,
    "PORTABLE": portable.findings,
}
