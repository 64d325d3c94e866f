"""The hand-shaped modules of the contract: enums, errors, handlers, registry, provider, settings, disclosure."""

import json
from typing import Any, cast

from cloche_codegen.ir import ErrorSpec, ToolSet, camel, enums, errors, operations
from cloche_codegen.load import JsonObject, Library
from cloche_codegen.publish import inline
from cloche_codegen.render import render

Outputs = dict[str, tuple[str, list[str]]]
MODELS = "cloche_contract._gen.models"


def emit(library: Library, sets: list[ToolSet]) -> Outputs:
    """Return text and owning schemas by path below `_gen`."""
    out: Outputs = {}
    catalog = library.document("errors/catalog.json")
    known = enums(library)
    known["BackendCause"] = sorted(cast(JsonObject, catalog.data["causes"]))
    owners = [*(d.path for d in library.under("common")), *(d.path for d in library.under("lifecycle")), catalog.path]
    out["enums.py"] = (_enums(known), owners)
    out["errors.py"] = (_errors(library), [catalog.path])
    out["data/errors.json"] = (_json(catalog.data), [catalog.path])
    tool_files = [doc.path for doc in library.under("tools")]
    set_files = [each.schema for each in sets]
    out["registry.py"] = (_registry(library, sets), set_files + tool_files)
    for each in sets:
        owned = [each.schema, *(tool.schema for tool in each.tools)]
        out[f"data/tools.{each.name}.json"] = (_json(published_set(library, each)), owned)
        out[f"handlers/{each.name}.py"] = (_handlers(each), owned)
        out[f"exports/{each.name}.py"] = (_set_exports(each), owned)
    out["provider.py"] = (_provider(library), ["provider/operations.json"])
    out["exports/provider.py"] = (model_exports(library, "provider"), [d.path for d in library.under("provider")])
    out["exports/lifecycle.py"] = (model_exports(library, "lifecycle"), [d.path for d in library.under("lifecycle")])
    out["exports/common.py"] = (model_exports(library, "common"), [d.path for d in library.under("common")])
    out["settings.py"] = (_settings(library), ["config/settings.json"])
    tables = sorted({*owners, *tool_files, "provider/operations.json"} - {catalog.path})
    out["disclosure.py"] = (_disclosure(library), tables)
    return out


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _enums(known: dict[str, list[str]]) -> str:
    rows = [
        {"name": name, "constant": _constant(name), "names": values, "literals": ", ".join(map(json.dumps, values))}
        for name, values in sorted(known.items())
    ]
    return render("enums.py.j2", enums=rows, sources="schemas/common, schemas/lifecycle and schemas/errors")


def _constant(name: str) -> str:
    snake = "".join(f"_{char}" if char.isupper() else char.upper() for char in name).lstrip("_")
    return f"{snake}_VALUES"


def _parameters(spec: ErrorSpec) -> tuple[str, str]:
    parts = [f"{d.name}: {d.annotation}" + (" | None = None" if d.optional else "") for d in spec.details]
    pairs = [f'"{d.name}": {d.name}' for d in spec.details]
    return (f", *, {', '.join(parts)}", "{" + ", ".join(pairs) + "}") if parts else ("", "{}")


def _errors(library: Library) -> str:
    data = library.document("errors/catalog.json").data
    specs = errors(library)
    categories = [
        {"name": name, "class_name": node["class"], **{key: node[key] for key in ("exit_code", "kind", "description")}}
        for name, node in sorted(cast("dict[str, JsonObject]", data["categories"]).items())
    ]
    rows: list[JsonObject] = []
    for spec in specs:
        parameters, arguments = _parameters(spec)
        names = [detail.name for detail in spec.details]
        rows.append({**vars(spec), "parameters": parameters, "arguments": arguments, "detail_names": names})
    causes = [{"name": name, **node} for name, node in sorted(cast("dict[str, JsonObject]", data["causes"]).items())]
    classes = [each["class_name"] for each in categories] + [spec.class_name for spec in specs]
    exported = sorted([*classes, "CAUSES", "ERRORS"])
    nodes = [detail for error in data["errors"].values() for detail in error["details"].values()]
    named = sorted({"BackendCause"} | {str(node["enum"]) for node in nodes if "enum" in node})
    return render("errors.py.j2", categories=categories, errors=rows, causes=causes, exported=exported, enums=named)


def _handlers(each: ToolSet) -> str:
    # A file for each set: two sets may have a tool of the same name.
    imports = [f"from {MODELS}.{tool.module} import {tool.input_class}, {tool.output_class}" for tool in each.tools]
    rows = [{**vars(tool), "summary": tool.description.split(". ")[0].rstrip(".") + "."} for tool in each.tools]
    return render("handlers.py.j2", imports=sorted(imports), set=each, tools=rows)


def _registry(library: Library, sets: list[ToolSet]) -> str:
    rows = [
        {
            "name": each.name,
            "alias": f"{camel(each.name)}ToolName",
            "literals": ", ".join(json.dumps(tool.name) for tool in each.tools),
            "tools": each.tools,
        }
        for each in sets
    ]
    return render("registry.py.j2", version=library.contract_version, sets=rows)


def published_set(library: Library, each: ToolSet) -> JsonObject:
    """What a server of this set publishes, and what `kernel.validate` checks beside it."""
    return {
        "set": each.name,
        "contract_version": library.contract_version,
        **{key: each.facts[key] for key in ("title", "description", "server_name", "server_title")},
        **{key: each.facts[key] for key in ("envelope", "error_shape", "disclosure_ceiling", "instructions")},
        "tools": [
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "outputSchema": tool.output_schema,
                "annotations": tool.meta["annotations"],
            }
            for tool in each.tools
        ],
        "checks": {tool.name: tool.checks for tool in each.tools},
        "meta": {
            tool.name: {
                **{key: tool.meta[key] for key in ("since", "stability", "errors")},
                "example": tool.input_node["examples"][0],
            }
            for tool in each.tools
        },
    }


def _exports(title: str, where: dict[str, str]) -> str:
    imports = [f"from {module} import {name} as {name}" for name, module in sorted(where.items())]
    return render("exports.py.j2", title=title, imports=imports, where=sorted(where.items()))


def _set_exports(each: ToolSet) -> str:
    where = {name: f"{MODELS}.{tool.module}" for tool in each.tools for name in (tool.input_class, tool.output_class)}
    where[each.class_name] = f"cloche_contract._gen.handlers.{each.name}"
    where[f"{camel(each.name)}ToolName"] = "cloche_contract._gen.registry"
    return _exports(f"What the {each.name} tools take and return.", where)


def model_exports(library: Library, folder: str) -> str:
    where: dict[str, str] = {}
    for doc in library.under(folder):
        for name, node in doc.defs.items():
            if node.get("type") == "object" and "properties" in node:
                where[name] = f"{MODELS}.{folder}.{doc.stem}"
            elif "enum" in node:
                where[name] = "cloche_contract._gen.enums"
                where[_constant(name)] = "cloche_contract._gen.enums"
    return _exports(f"Names of schemas/{folder}.", where)


def _provider(library: Library) -> str:
    doc = library.document("provider/operations.json")
    found = operations(doc)
    rows: list[JsonObject] = []
    needed: dict[str, str] = {}
    for op in found:
        node = next(each for each in doc.data["x-operations"] if each["name"] == op.name)
        if op.request:
            needed[op.request] = f"{MODELS}.provider.operations"
        if op.response:
            path = library.resolve(node["response"], doc.path)[0] if "#" in node["response"] else doc.path
            needed[op.response] = f"{MODELS}.{path.removesuffix('.json').replace('/', '.')}"
        rows.append(
            {
                "name": op.name,
                "parameters": f", request: {op.request}" if op.request else "",
                "returns": op.response or "None",
                "description": op.description,
                "raises": ", ".join(camel(code) for code in op.errors) + ".",
            }
        )
    imports = [f"from {module} import {name}" for name, module in sorted(needed.items())]
    return render("provider.py.j2", imports=imports, operations=rows, description=doc.data["description"])


def _settings(library: Library) -> str:
    data = library.document("config/settings.json").data
    empty: JsonObject = {"minimum": None, "maximum": None, "choices": [], "unit": None, "workspace": True}
    rows = [
        {**empty, "key": key, **node} for key, node in sorted(cast("dict[str, JsonObject]", data["settings"]).items())
    ]
    return render("settings.py.j2", settings=rows, layers=data["layers"])


def disclosure_tables(library: Library) -> list[tuple[str, list[tuple[str, str]]]]:
    """Every object that leaves or could leave, with the audience of each field; nothing said means internal."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for folder in ("common", "lifecycle", "provider", "tools"):
        for doc in library.under(folder):
            for name, node in doc.defs.items():
                if "properties" not in node or name.endswith("Input"):
                    continue
                props = cast("dict[str, JsonObject]", node["properties"])
                resolved = {key: cast(JsonObject, inline(library, value, doc.path)) for key, value in props.items()}
                prefix = f"{doc.data['x-tool']['set']}." if "x-tool" in doc.data else ""
                fields = [(key, value.get("x-disclosure", "internal")) for key, value in resolved.items()]
                found.append((prefix + name, fields))
    return sorted(found)


def _disclosure(library: Library) -> str:
    projections: list[JsonObject] = []
    imports: set[str] = set()
    for doc in library.under("lifecycle"):
        module = f"{MODELS}.lifecycle.{doc.stem}"
        for pair in doc.data.get("x-projections", []):
            fields = list(doc.defs[pair["to"]]["properties"])
            projections.append({"source": pair["from"], "target": pair["to"], "module": module, "fields": fields})
            imports.add(f"from {module} import {pair['from']}, {pair['to']}")
    rows = [{"name": name, "fields": fields} for name, fields in disclosure_tables(library)]
    return render("disclosure.py.j2", tables=rows, projections=projections, imports=sorted(imports))
