"""The REST API of a platform: its routes as data, and a typed client over whoever sends them."""

import json
from typing import cast

from cloche_codegen.emit.contract import MODELS, Outputs, model_exports
from cloche_codegen.load import JsonObject, Library
from cloche_codegen.render import render

PLATFORM = "http/platform.json"
_NOTHING: JsonObject = {"request": None, "response": None, "query": [], "many": False}


def emit(library: Library) -> Outputs:
    """Return text and owning schemas by path below the `_gen` of the contract."""
    owners = [doc.path for doc in library.under("http")]
    data = library.document(PLATFORM).data
    routes = [_route(node, data["x-statuses"]) for node in cast("list[JsonObject]", data["x-routes"])]
    headers = [{**node, "constant": f"HEADER_{node['name'].upper()}"} for node in data["x-headers"]]
    exported = sorted([each["constant"] for each in [*routes, *headers]] + ["ROUTES"])
    used = sorted({name for route in routes for name in (route["request"], route["response"]) if name})
    return {
        "http_routes.py": (render("http_routes.py.j2", routes=routes, headers=headers, exported=exported), owners),
        "client/platform.py": (render("platform_client.py.j2", routes=routes, names=used, models=MODELS), owners),
        "exports/http.py": (model_exports(library, "http"), owners),
    }


def _route(node: JsonObject, general: JsonObject) -> JsonObject:
    statuses = sorted({**general, **node.get("statuses", {})}.items())
    constant, response = node["name"].upper(), cast("str | None", node.get("response"))
    values = [part[1:-1] for part in node["path"].split("/") if part.startswith("{")]
    parameters, arguments = ["self", *(f"{name}: str" for name in values)], [f"routes.{constant}"]
    if values:
        arguments.append(f"values={{{', '.join(f'{json.dumps(name)}: {name}' for name in values)}}}")
    if "request" in node:
        parameters.append(f"request: {node['request']}")
        arguments.append("body=body")
    parameters.append("*")
    if "query" in node:
        parameters.append("query: Mapping[str, str] = _NONE")
        arguments.append("query=query")
    return {
        **_NOTHING,
        **node,
        "constant": constant,
        "statuses": [(int(status), code) for status, code in statuses],
        "parameters": ", ".join([*parameters, "headers: Mapping[str, str] = _NONE"]),
        "arguments": ", ".join([*arguments, "headers=headers"]),
        "returns": "None" if response is None else f"Page[{response}]" if node.get("many") else response,
    }
