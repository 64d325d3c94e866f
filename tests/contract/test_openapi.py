"""The OpenAPI description of a platform says what the routes are, and what the reference platform answers.

Source: architecture 3.5; issue 8, item 5.
"""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from cloche_contract.http import ROUTES, openapi
from cloche_contract.lifecycle import AgentEndpoint
from cloche_testkit import platform as reference
from cloche_testkit._http import request
from cloche_testkit.plane import ScriptedPlane
from cloche_testkit.scripted import ScriptedProvider

pytestmark = pytest.mark.anyio


def test_every_route_is_described_once() -> None:
    described = {
        (method.upper(), path): operation
        for path, operations in openapi()["paths"].items()
        for method, operation in operations.items()
    }
    assert {(route.method, route.path): route.name for route in ROUTES} == {
        where: operation["operationId"] for where, operation in described.items()
    }
    for route in ROUTES:
        operation = described[route.method, route.path]
        assert {*map(str, route.success), *map(str, route.statuses)} == set(operation["responses"])
        named = {entry["name"] for entry in operation.get("parameters", []) if entry["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", route.path))
        assert {entry["name"] for entry in operation.get("parameters", []) if entry["in"] == "query"} == {*route.query}


def test_its_schemas_are_valid_and_all_that_it_refers_to_is_there() -> None:
    document = openapi()
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    named = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document))
    assert {*named} <= set(schemas)
    assert json.dumps(document).count('"$ref"') == len(named)
    assert '"x-' not in json.dumps(document)
    assert document["openapi"].startswith("3.1")


async def test_the_reference_platform_answers_what_is_described() -> None:
    """Each answer is of its status and schema, refusals included."""
    plane = ScriptedPlane(limits=("cpu", "memory"), templates=("base",))
    document = openapi()

    async def ask(method: str, path: str, body: object = None, *, key: str | None = None) -> Any:
        endpoint = AgentEndpoint(base_url=served.url, socket_path=None, access_token=SecretStr(""), version="1")
        headers = {"X-API-KEY": served.api_key if key is None else key, "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        async with request(endpoint, method, path, headers=headers, body=content) as answer:
            raw = await answer.body()
        (template,) = [each for each in document["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path)]
        described = document["paths"][template][method.lower()]["responses"][str(answer.status)]
        if "content" in described:
            schema = {**described["content"]["application/json"]["schema"], "components": document["components"]}
            jsonschema.validate(json.loads(raw), schema, Draft202012Validator)
        else:
            assert raw == b""
        return json.loads(raw or b"null")

    async with reference.ReferencePlatform(ScriptedProvider(plane)).serve() as served:
        made = await ask("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60, "metadata": {"a": "b"}})
        where = f"/sandboxes/{made['sandboxID']}"
        await ask("GET", "/v2/sandboxes")
        await ask("GET", where)
        await ask("POST", f"{where}/timeout", {"timeout": 90})
        await ask("POST", f"{where}/pause", {})
        await ask("POST", f"{where}/pause", {})
        await ask("POST", f"/v2{where}/connect", {"timeout": 90})
        await ask("POST", "/v2/sandboxes", {"templateID": "none", "timeout": 60})
        await ask("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 0})
        await ask("GET", where, key="wrong")
        await ask("DELETE", where)
        await ask("DELETE", where)
