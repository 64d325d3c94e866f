"""The reference pages: plain CommonMark with pipe tables, one per tool and one per catalogue."""

import json
from typing import Any, cast

from cloche_codegen.emit.contract import Outputs, disclosure_tables
from cloche_codegen.ir import Tool, ToolSet, errors, operations
from cloche_codegen.load import JsonObject, Library
from cloche_codegen.publish import inline
from cloche_codegen.render import render

_LIMITS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "characters at least {}"),
    ("maxLength", "characters at most {}"),
    ("maxItems", "entries at most {}"),
    ("maxProperties", "entries at most {}"),
    ("pattern", "form `{}`"),
)
_CHECKS = {
    "max_bytes": "bytes at most {}",
    "total_bytes": "bytes in all at most {}",
    "no_parent_segment": "no `..`",
    "base64_bytes": "strict base64, decoded at most {} bytes",
}
_EFFECTS = {
    "readOnlyHint": ("Changes nothing.", "Changes something in a sandbox or makes one."),
    "destructiveHint": ("May destroy or overwrite something.", "Destroys and overwrites nothing."),
    "idempotentHint": ("The same call again has no further effect.", "The same call again has a further effect."),
    "openWorldHint": ("Reaches a sandbox or a provider.", "Reaches nothing outside this process."),
}


def emit(library: Library, sets: list[ToolSet]) -> Outputs:
    """Return text and owning schemas by path below docs/reference."""
    specs = {spec.name: spec for spec in errors(library)}
    out: Outputs = {}
    for each in sets:
        for tool in each.tools:
            sources = [tool.schema, "errors/catalog.json"]
            out[f"tools/{each.name}/{tool.name}.md"] = (_tool_page(tool, specs), sources)
    out["errors.md"] = (_errors(library), ["errors/catalog.json"])
    out["settings.md"] = (_settings(library), ["config/settings.json"])
    out["lifecycle.md"] = (_lifecycle(library), ["lifecycle/sandbox.json"])
    owners = [doc.path for folder in ("common", "lifecycle", "provider", "tools") for doc in library.under(folder)]
    out["disclosure.md"] = (_disclosure(library), owners)
    out["provider.md"] = (_operations(library, "provider", "Provider interface"), ["provider/operations.json"])
    agent = [doc.path for doc in library.under("agent")]
    out["agent.md"] = (_operations(library, "agent", "Agent protocol"), agent)
    http = [doc.path for doc in library.under("http")]
    out["http.md"] = (_operations(library, "http", "Platform REST API"), http)
    out["index.md"] = (_index(library, sets), [each.schema for each in sets])
    return out


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _type(node: JsonObject) -> str:
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    kind = node.get("type", "object")
    text = " or ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)
    if "items" in node:
        return f"array of {cast(JsonObject, node['items']).get('title') or node['items'].get('type', 'object')}"
    return cast(str, node["title"]) if "properties" in node else text


def _limits(node: JsonObject) -> str:
    said = [text.format(node[key]) for key, text in _LIMITS if key in node]
    said += [_CHECKS[key].format(value) for key, value in node.get("x-check", {}).items()]
    return ", ".join(said)


def _default(node: JsonObject) -> str:
    return f"`{json.dumps(node['default'], ensure_ascii=False)}`" if "default" in node else ""


def _tool_page(tool: Tool, specs: dict[str, Any]) -> str:
    needed = cast("list[str]", tool.input_node.get("required", []))
    arguments = [
        [
            f"`{name}`",
            _type(node),
            "yes" if name in needed else "no",
            _default(node),
            node.get("x-unit", ""),
            _limits(node),
            node["description"],
        ]
        for name, node in cast("dict[str, JsonObject]", tool.input_node["properties"]).items()
    ]
    effects = [_EFFECTS[key][0 if value else 1] for key, value in tool.meta["annotations"].items()]
    request = {"name": tool.name, "arguments": tool.input_node["examples"][-1]}
    return render(
        "tool.md.j2",
        tool=tool,
        arguments=[[_cell(cell) for cell in row] for row in arguments],
        results=[[_cell(cell) for cell in row] for row in _results(tool.output_node, "")],
        errors=[specs[code] for code in tool.meta["errors"]],
        request=json.dumps(request, ensure_ascii=False),
        response=json.dumps(tool.output_node["examples"][0], ensure_ascii=False, indent=2),
        effects=effects,
    )


def _results(node: JsonObject, prefix: str) -> list[list[str]]:
    rows: list[list[str]] = []
    needed = cast("list[str]", node.get("required", []))
    for name, prop in cast("dict[str, JsonObject]", node["properties"]).items():
        always = "yes" if name in needed else "no"
        audience = prop.get("x-disclosure", "internal")
        meaning = prop.get("description", "")
        rows.append([f"`{prefix}{name}`", _type(prop), always, prop.get("x-unit", ""), audience, meaning])
        inner = cast(JsonObject, prop.get("items", prop))
        if "properties" in inner:
            rows += _results(inner, f"{prefix}{name}{'[]' if 'items' in prop else ''}.")
    return rows


def _page(library: Library, title: str, intro: str, sections: list[JsonObject], source: str) -> str:
    for section in sections:
        section["rows"] = [[_cell(cell) for cell in row] for row in section["rows"]]
    version = library.contract_version
    return render("page.md.j2", title=title, intro=intro, sections=sections, version=version, source=f"`{source}`")


def _errors(library: Library) -> str:
    data = library.document("errors/catalog.json").data
    rows = [
        [
            f"`{spec.name}`",
            spec.code,
            spec.category,
            str(spec.http),
            spec.message,
            spec.suggestion,
            ", ".join(f"`{detail.name}`" for detail in spec.details),
            spec.retry,
        ]
        for spec in errors(library)
    ]
    categories = [
        [f"`{name}`", node["class"], str(node["exit_code"]), node["description"]]
        for name, node in sorted(data["categories"].items())
    ]
    causes = [[f"`{name}`", node["message"], node["fix"]] for name, node in sorted(data["causes"].items())]
    columns = ["Code", "Number", "Category", "HTTP", "What happened", "What to do", "Details", "Try again"]
    sections: list[JsonObject] = [
        {"head": ["## Errors"], "columns": columns, "rows": rows},
        {"head": ["## Categories"], "columns": ["Category", "Class", "Exit code", "Meaning"], "rows": categories},
        {
            "head": ["## Causes of `backend_unavailable`"],
            "columns": ["Cause", "What is missing", "What to do"],
            "rows": causes,
        },
    ]
    intro = "Every error of every package. Text is static: no message of a provider, no address, no value is in it."
    return _page(library, "Errors", intro, sections, "schemas/errors/catalog.json")


def _settings(library: Library) -> str:
    data = library.document("config/settings.json").data
    rows = [
        [
            f"`{node['env']}`",
            f"`{node['toml']}`" if node["toml"] else "never",
            node["type"],
            _default(node),
            "yes" if node["secret"] else "no",
            node["description"],
        ]
        for _, node in sorted(cast("dict[str, JsonObject]", data["settings"]).items())
    ]
    columns = ["Variable", "Key in config.toml", "Type", "Default", "Secret", "Meaning"]
    intro = f"The first layer that has a value wins: {', '.join(data['layers'])}. A blank value counts as none."
    sections: list[JsonObject] = [{"head": [], "columns": columns, "rows": rows}]
    return _page(library, "Settings", intro, sections, "schemas/config/settings.json")


def _lifecycle(library: Library) -> str:
    doc = library.document("lifecycle/sandbox.json")
    sections: list[JsonObject] = [
        {
            "head": ["## States"],
            "columns": ["State", "May become"],
            "rows": [
                [f"`{name}`", ", ".join(f"`{each}`" for each in after) or "nothing"]
                for name, after in doc.data["x-transitions"].items()
            ],
        }
    ]
    for name, node in doc.defs.items():
        if "properties" in node:
            rows = _results(cast(JsonObject, inline(library, node, doc.path)), "")
            columns = ["Name", "Type", "Always there", "Unit", "Shown to", "Meaning"]
            sections.append({"head": [f"## {name}", node["description"]], "columns": columns, "rows": rows})
    return _page(library, "Lifecycle", doc.data["description"], sections, "schemas/lifecycle/sandbox.json")


def _disclosure(library: Library) -> str:
    sections: list[JsonObject] = [
        {"head": [f"## {name}"], "columns": ["Field", "Shown to"], "rows": [[f"`{key}`", level] for key, level in rows]}
        for name, rows in disclosure_tables(library)
    ]
    intro = (
        "Who may see each field: `model` (a connected model) is narrower than `operator` (who runs the server), "
        "`internal` and `secret` never leave the process."
    )
    return _page(library, "Disclosure", intro, sections, "x-disclosure in schemas/")


def _operations(library: Library, folder: str, title: str) -> str:
    sections: list[JsonObject] = []
    for doc in library.under(folder):
        rows = [
            [
                f"`{op.name}`",
                f"`{op.path}`" if op.path else "",
                f"`{op.request or '-'}`",
                f"`{op.response or '-'}`",
                op.description,
                ", ".join(f"`{code}`" for code in op.errors),
            ]
            for op in operations(doc)
        ]
        columns = ["Operation", "Path", "Request", "Answer", "What it does", "Errors"]
        if rows:
            head = [f"## {doc.stem}", doc.data["description"]]
            sections.append({"head": head, "columns": columns, "rows": rows})
        sections += _plain(doc.data)
        for name, node in doc.defs.items():
            if "properties" in node:
                fields = _fields(cast(JsonObject, inline(library, node, doc.path)))
                head = [f"### {doc.stem}: {name}", node["description"]]
                sections.append({"head": head, "columns": ["Name", "Type", "Required", "Meaning"], "rows": fields})
    intro = "The operations, what they take and what they answer."
    return _page(library, title, intro, sections, f"schemas/{folder}/")


def _plain(data: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = []
    if "x-routes" in data:
        rows = [[each["method"], f"`{each['path']}`", each["description"]] for each in data["x-routes"]]
        found.append({"head": ["## Plain HTTP"], "columns": ["Method", "Path", "What it does"], "rows": rows})
        rows = [[f"`{each['header']}`", each["description"]] for each in data["x-headers"]]
        found.append({"head": ["## Headers"], "columns": ["Header", "Meaning"], "rows": rows})
    return found


def _fields(node: JsonObject) -> list[list[str]]:
    needed = cast("list[str]", node.get("required", []))
    props = cast("dict[str, JsonObject]", node["properties"])
    return [
        [f"`{name}`", _type(prop), "yes" if name in needed else "no", prop.get("description", "")]
        for name, prop in props.items()
    ]


def _index(library: Library, sets: list[ToolSet]) -> str:
    groups = [
        {
            "title": each.facts["title"],
            "intro": each.facts["description"],
            "links": [
                {
                    "text": tool.name,
                    "path": f"tools/{each.name}/{tool.name}.md",
                    "summary": f"{tool.description.split('. ')[0].rstrip('.')}.",
                }
                for tool in each.tools
            ],
        }
        for each in sets
    ]
    rest = [
        ("Errors", "errors.md", "every error, its text and what to do."),
        ("Settings", "settings.md", "every variable and configuration key."),
        ("Lifecycle", "lifecycle.md", "states of a sandbox and what is known of it."),
        ("Disclosure", "disclosure.md", "who may see which field."),
        ("Provider interface", "provider.md", "what a provider implements."),
        ("Agent protocol", "agent.md", "how a host talks to the agent inside a sandbox."),
        ("Platform REST API", "http.md", "how the provider cloud talks to a sandbox platform."),
    ]
    links = [{"text": text, "path": path, "summary": summary} for text, path, summary in rest]
    groups.append({"title": "Everything else", "intro": "Catalogues and interfaces.", "links": links})
    return render("index.md.j2", groups=groups, version=library.contract_version)
