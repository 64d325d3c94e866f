"""What publishes the sandbox server: an entry of the MCP registry, and a bundle that clients install by a click."""

import json
import re
import tomllib
from pathlib import Path

from cloche_codegen.emit.contract import Outputs
from cloche_codegen.ir import Tool, ToolSet
from cloche_codegen.load import JsonObject, Library, SchemaError

_PROJECT = "packages/cli/pyproject.toml"
_README = "packages/cli/README.md"
# The registry looks for it there, in what the package index shows, before it takes an entry.
_NAME_LINE = re.compile(r"<!-- mcp-name: (\S+) -->")
# Rules of the registry's schema that other names or texts could break.
_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_MOST_OF_NAME, _MOST_OF_TEXT = 200, 100
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_SUMMARY = "Isolated sandboxes for AI agents: run code, commands and file operations."
# What somebody who installs the server may want to set; the rest is in the reference.
_SETTINGS = ("provider", "sandbox_api_key", "sandbox_base_url", "default_template", "local_egress", "log_level")
_SERVER = '''"""Starts the server of the bundle: `abx mcp start`. Generated; do not edit. See schemas/."""

import sys

from cloche_cli.main import main

if __name__ == "__main__":
    sys.exit(main(["mcp", "start"]))
'''


def emit(library: Library, sets: list[ToolSet], repository: Path) -> Outputs:
    """Return text and sources by path; nothing where there is no command line."""
    project = repository / _PROJECT
    if not project.is_file():
        return {}
    name = _name((repository / _README).read_text(encoding="utf-8"))
    version = str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    (sandbox,) = [each for each in sets if each.name == "sandbox"]
    known = library.document("config/settings.json").data["settings"]
    settings = {name: known[name] for name in _SETTINGS if name in known}
    sources = [sandbox.schema, "config/settings.json", _PROJECT]
    tools = [tool.schema for tool in sandbox.tools]
    return {
        "server.json": (_json(_registry_entry(name, sandbox, settings, version)), sources),
        "bundle/manifest.json": (_json(_manifest(sandbox, settings, version)), [*sources, *tools]),
        "bundle/pyproject.toml": (_bundle_project(version), [_PROJECT]),
        "bundle/server.py": (_SERVER, [_PROJECT]),
    }


def _name(readme: str) -> str:
    """Who publishes the server, by the README of the command line: reverse DNS of a domain, and a name below it."""
    found = _NAME_LINE.findall(readme)
    if len(found) != 1 or not _NAME.fullmatch(found[0]) or len(found[0]) > _MOST_OF_NAME:
        raise SchemaError(f"{_README}: needs one line <!-- mcp-name: NAMESPACE/NAME --> of letters, digits, . - and _")
    return str(found[0])


def _json(document: JsonObject) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _registry_entry(name: str, sandbox: ToolSet, settings: JsonObject, version: str) -> JsonObject:
    if not all(0 < len(text) <= _MOST_OF_TEXT for text in (sandbox.facts["server_title"], _SUMMARY)):
        raise SchemaError(f"{sandbox.schema}: server_title must have 1 to {_MOST_OF_TEXT} characters for the registry")
    return {
        "$schema": _SCHEMA,
        "name": name,
        "title": sandbox.facts["server_title"],
        "description": _SUMMARY,
        "version": version,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "cloche",
                "version": version,
                "runtimeHint": "uvx",
                "runtimeArguments": [{"type": "named", "name": "--with", "value": f"cloche[mcp]=={version}"}],
                "packageArguments": [{"type": "positional", "value": word} for word in ("mcp", "start")],
                "transport": {"type": "stdio"},
                "environmentVariables": [_variable(setting) for setting in settings.values()],
            }
        ],
    }


def _variable(setting: JsonObject) -> JsonObject:
    found: JsonObject = {"name": setting["env"], "description": setting["description"], "isRequired": False}
    if setting["secret"]:
        found["isSecret"] = True
    if "choices" in setting:
        found["choices"] = setting["choices"]
    if setting["default"] is not None:
        found["default"] = str(setting["default"])
    return found


def _manifest(sandbox: ToolSet, settings: JsonObject, version: str) -> JsonObject:
    return {
        "manifest_version": "0.4",
        "name": sandbox.facts["server_name"],
        "display_name": sandbox.facts["server_title"],
        "version": version,
        "description": _SUMMARY,
        "author": {"name": "Cloche"},
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py"],
                "env": {setting["env"]: f"${{user_config.{name}}}" for name, setting in settings.items()},
            },
        },
        "tools": [{"name": tool.name, "description": _first_sentence(tool)} for tool in sandbox.tools],
        "user_config": {name: _user_setting(name, setting) for name, setting in settings.items()},
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": ">=3.10"}},
    }


def _first_sentence(tool: Tool) -> str:
    return tool.description.partition(". ")[0].removesuffix(".") + "."


def _user_setting(name: str, setting: JsonObject) -> JsonObject:
    found: JsonObject = {
        "type": "string",
        "title": name.replace("_", " ").capitalize(),
        "description": setting["description"],
        "required": False,
        # A blank setting counts as not set.
        "default": "" if setting["default"] is None else str(setting["default"]),
    }
    if setting["secret"]:
        found["sensitive"] = True
    return found


def _bundle_project(version: str) -> str:
    return (
        f'[project]\nname = "cloche-bundle"\nversion = "{version}"\nrequires-python = ">=3.10"\n'
        f'dependencies = ["cloche[mcp]=={version}"]\n'
    )
