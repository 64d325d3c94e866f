"""Both ends of the agent protocol: the client of the contract, and what the agent knows without the contract."""

from typing import Any, cast

from cloche_codegen.emit.contract import MODELS, Outputs, model_exports
from cloche_codegen.ir import Operation, enums, errors, operations
from cloche_codegen.load import Document, JsonObject, Library
from cloche_codegen.render import render


def _all(library: Library) -> list[tuple[Document, JsonObject, Operation]]:
    return [
        (doc, node, op)
        for doc in library.under("agent")
        for node, op in zip(cast("list[JsonObject]", doc.data["x-operations"]), operations(doc), strict=True)
    ]


def emit_client(library: Library) -> Outputs:
    """The host's side, below the `_gen` of the contract."""
    owners = [doc.path for doc in library.under("agent")]
    imports: set[str] = set()
    rows: list[JsonObject] = []
    for doc, node, op in _all(library):
        home = f"{MODELS}.agent.{doc.stem}"
        reference = cast(str, node["response"])
        where = library.resolve(reference, doc.path)[0] if "#" in reference else doc.path
        imports |= {f"from {home} import {op.request}"}
        imports |= {f"from {MODELS}.{where.removesuffix('.json').replace('/', '.')} import {op.response}"}
        rows.append({**vars(op), "name": f"{doc.stem}_{op.name}"})
    streams = [row for row in rows if row["kind"] != "unary"]
    unary = [row for row in rows if row["kind"] == "unary"]
    return {
        "client/aio.py": (render("client.py.j2", imports=sorted(imports), unary=unary, streams=streams), owners),
        "agent_wire.py": (_wire(library), owners),
        "exports/agent.py": (model_exports(library, "agent"), owners),
    }


def _wire(library: Library) -> str:
    service = library.document("agent/service.json").data
    paths = [{"constant": f"{doc.stem}_{op.name}".upper(), "path": op.path} for doc, _, op in _all(library)]
    paths += [{"constant": f"route_{node['name']}".upper(), "path": node["path"]} for node in service["x-routes"]]
    headers = [{**node, "constant": node["name"].upper()} for node in service["x-headers"]]
    names = [path["constant"] for path in paths] + [f"HEADER_{header['constant']}" for header in headers]
    exported = sorted([*names, "PROTOCOL"])
    return render("agent_wire.py.j2", protocol=service["x-protocol"], paths=paths, headers=headers, exported=exported)


def emit_agentd(library: Library) -> Outputs:
    """The agent's side, standard library only, below the `_gen` of agentd."""
    owners = [doc.path for doc in library.under("agent")]
    shared = [*owners, "errors/catalog.json", "common/execution.json"]
    checked = [*owners, *(doc.path for doc in library.under("layerstack"))]
    return {
        "wire.py": (_wire(library), owners),
        "errors.py": (_agentd_errors(library), shared),
        "messages.py": (render("agentd_messages.py.j2", messages=_messages(library)), checked),
    }


def _agentd_errors(library: Library) -> str:
    service = library.document("agent/service.json").data
    used = {code for _, _, op in _all(library) for code in op.errors}
    used |= {code for route in service["x-routes"] for code in route.get("errors", [])}
    rows = [
        {**vars(spec), "detail_names": [detail.name for detail in spec.details]}
        for spec in errors(library)
        if spec.name in used | {"authentication_failed", "internal_error", "unsupported_operation"}
    ]
    known = enums(library)
    return render("agentd_errors.py.j2", errors=rows, languages=known["Language"], stop_reasons=known["StopReason"])


def _messages(library: Library) -> list[JsonObject]:
    found: list[JsonObject] = []
    for doc in (*library.under("agent"), *library.under("layerstack")):
        for name, node in sorted(doc.defs.items()):
            if "properties" in node:
                required = cast("list[str]", node["required"])
                fields = [
                    {"name": key, "row": _row(library, doc.path, value, key in required)}
                    for key, value in cast("dict[str, JsonObject]", node["properties"]).items()
                ]
                found.append({"name": name, "fields": fields})
    return found


def _row(library: Library, base: str, node: JsonObject, required: bool) -> list[Any]:
    inside = ""
    if "$ref" in node:
        _, inside, target = library.resolve(node["$ref"], base)
        node = {**target, **node}
        inside = inside if "properties" in target else ""
    kind = next((each for each in _as_list(node.get("type", "any")) if each != "null"), "any")
    least = node.get("minLength", node.get("minimum", node.get("minItems")))
    most = node.get("maxLength", node.get("maximum", node.get("maxItems", node.get("maxProperties"))))
    below = node.get("items") or node.get("additionalProperties") or None
    if isinstance(below, dict):
        item = cast(JsonObject, below)
        inside = cast(str, item["type"] if "type" in item else item["$ref"].rsplit("/", 1)[-1])
    return [
        kind,
        required,
        least,
        most,
        tuple(node.get("enum", ())),
        inside,
        _anchored(cast(str, node.get("pattern", ""))),
    ]


def _anchored(pattern: str) -> str:
    """The pattern for Python, whose $ also matches before a last line feed."""
    return pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern


def _as_list(value: Any) -> list[str]:
    return cast("list[str]", value) if isinstance(value, list) else [cast(str, value)]
