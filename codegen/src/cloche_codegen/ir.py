"""What the schemas say, as frozen dataclasses that templates can loop over."""

from dataclasses import dataclass
from typing import cast

from cloche_codegen.load import Document, JsonObject, Library
from cloche_codegen.publish import checks, inline, published


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


@dataclass(frozen=True)
class Tool:
    """One tool of a set."""

    name: str
    set: str
    title: str
    description: str
    schema: str
    input_class: str
    output_class: str
    input_node: JsonObject
    output_node: JsonObject
    input_schema: JsonObject
    output_schema: JsonObject
    checks: JsonObject
    meta: JsonObject

    @property
    def module(self) -> str:
        return f"{self.set}.{self.name}"


@dataclass(frozen=True)
class ToolSet:
    """A tool set, its tools in contract order."""

    name: str
    schema: str
    facts: JsonObject
    tools: tuple[Tool, ...]

    @property
    def class_name(self) -> str:
        return f"{camel(self.name)}Tools"


@dataclass(frozen=True)
class Detail:
    """One key of the details of an error."""

    name: str
    annotation: str
    optional: bool
    disclosure: str
    description: str


@dataclass(frozen=True)
class ErrorSpec:
    """One error of the catalogue."""

    name: str
    class_name: str
    category: str
    category_class: str
    code: str
    message: str
    suggestion: str
    http: int
    connect: str
    retry: str
    details: tuple[Detail, ...]


@dataclass(frozen=True)
class Operation:
    """One operation of a provider or of the agent."""

    name: str
    kind: str
    path: str
    request: str | None
    response: str | None
    description: str
    errors: tuple[str, ...]


def tool_sets(library: Library) -> list[ToolSet]:
    """Every tool set with its tools, in the order that the set file says."""
    sets: list[ToolSet] = []
    for doc in library.under("toolsets"):
        name = cast(str, doc.data["name"])
        tools = tuple(_tool(library, library.document(f"tools/{name}/{tool}.json")) for tool in doc.data["order"])
        sets.append(ToolSet(name, doc.path, doc.data, tools))
    return sets


def _tool(library: Library, doc: Document) -> Tool:
    meta = cast(JsonObject, doc.data["x-tool"])
    name = cast(str, doc.data["title"])
    input_class, output_class = f"{camel(name)}Input", f"{camel(name)}Output"
    input_node, output_node = cast(JsonObject, doc.defs[input_class]), cast(JsonObject, doc.defs[output_class])
    return Tool(
        name=name,
        set=meta["set"],
        title=meta["title"],
        description=doc.data["description"],
        schema=doc.path,
        input_class=input_class,
        output_class=output_class,
        input_node=cast(JsonObject, inline(library, input_node, doc.path)),
        output_node=cast(JsonObject, inline(library, output_node, doc.path)),
        input_schema=published(library, input_node, doc.path),
        output_schema=published(library, output_node, doc.path),
        checks=checks(library, input_node, doc.path),
        meta=meta,
    )


def enums(library: Library) -> dict[str, list[str]]:
    """Named enums of the shared folders."""
    found: dict[str, list[str]] = {}
    for doc in (*library.under("common"), *library.under("lifecycle"), *library.under("agent")):
        for name, node in doc.defs.items():
            if "enum" in node:
                found[name] = list(node["enum"])
    return found


def _detail(name: str, node: JsonObject, known: dict[str, list[str]]) -> Detail:
    plain = {"string": "str", "integer": "int", "boolean": "bool"}
    one = node["enum"] if "enum" in node else plain.get(node["type"], "str")
    annotation = f"Sequence[{one}]" if node["type"] == "array" else one
    return Detail(name, annotation, bool(node.get("optional")), node["x-disclosure"], node["description"])


def errors(library: Library) -> list[ErrorSpec]:
    """The error catalogue, sorted by name."""
    data = library.document("errors/catalog.json").data
    categories = cast("dict[str, JsonObject]", data["categories"])
    specs: list[ErrorSpec] = []
    for name, node in sorted(cast("dict[str, JsonObject]", data["errors"]).items()):
        category = categories[node["category"]]
        details = sorted(
            (_detail(key, value, {}) for key, value in cast("dict[str, JsonObject]", node["details"]).items()),
            key=lambda detail: detail.optional,
        )
        specs.append(
            ErrorSpec(
                name=name,
                class_name=camel(name),
                category=node["category"],
                category_class=category["class"],
                code=node["code"],
                message=node["message"],
                suggestion=node["suggestion"],
                http=node["http"],
                connect=node.get("connect", category["connect"]),
                retry=node["retry"],
                details=tuple(details),
            )
        )
    return specs


def operations(doc: Document) -> list[Operation]:
    """The operations that a provider or agent file declares, in its order."""
    return [
        Operation(
            name=node["name"],
            kind=node.get("kind", "unary"),
            path=node.get("path", ""),
            request=node.get("request"),
            response=node["response"].rsplit("/", 1)[-1] if node.get("response") else None,
            description=node["description"],
            errors=tuple(node.get("errors", ())),
        )
        for node in cast("list[JsonObject]", doc.data.get("x-operations", []))
    ]
