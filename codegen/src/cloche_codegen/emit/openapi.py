"""The REST API of a platform as an OpenAPI 3.1 document: its schema objects are JSON Schema 2020-12, as ours are."""

import json
from typing import cast

from cloche_codegen.emit.contract import Outputs
from cloche_codegen.load import JsonObject, Library
from cloche_codegen.publish import published

PLATFORM = "http/platform.json"
PATH = "data/openapi.json"


def emit(library: Library) -> Outputs:
    """Return text and owning schemas by path below the `_gen` of the contract."""
    data = library.document(PLATFORM).data
    paths: dict[str, JsonObject] = {}
    for route in cast("list[JsonObject]", data["x-routes"]):
        paths.setdefault(route["path"], {})[route["method"].lower()] = _operation(route, data["x-statuses"])
    document: JsonObject = {
        "openapi": "3.1.0",
        "info": {"title": "Sandbox platform", "description": data["description"], "version": library.contract_version},
        "security": [{"bearer": []}, {"api_key": []}],
        "paths": paths,
        "components": {
            "schemas": {name: published(library, schema, PLATFORM) for name, schema in data["$defs"].items()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "api_key": {"type": "apiKey", "in": "header", "name": data["x-headers"][0]["header"]},
            },
        },
    }
    return {PATH: (json.dumps(document, indent=1) + "\n", [PLATFORM])}


def _operation(route: JsonObject, general: JsonObject) -> JsonObject:
    values = [(part[1:-1], "path") for part in route["path"].split("/") if part.startswith("{")]
    given = [*values, *((name, "query") for name in route.get("query", []))]
    answer: JsonObject = {"description": route["description"]}
    if response := route.get("response"):
        schema: JsonObject = {"$ref": f"#/components/schemas/{response}"}
        answer["content"] = _json({"type": "array", "items": schema} if route.get("many") else schema)
    refusals = {**general, **route.get("statuses", {})}
    error = _json({"$ref": "#/components/schemas/PlatformError"})
    told: JsonObject = {str(status): answer for status in route["success"]}
    told |= {status: {"description": code, "content": error} for status, code in sorted(refusals.items())}
    operation: JsonObject = {"operationId": route["name"], "description": route["description"], "responses": told}
    if given:
        text = {"type": "string"}
        operation["parameters"] = [{"name": n, "in": w, "required": w == "path", "schema": text} for n, w in given]
    if request := route.get("request"):
        operation["requestBody"] = {"required": True, "content": _json({"$ref": f"#/components/schemas/{request}"})}
    return operation


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}
