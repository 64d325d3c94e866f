"""Who publishes the server is said once, in the README, where the registry looks for it."""

import json
from pathlib import Path

import pytest

from cloche_codegen.emit import publishing
from cloche_codegen.ir import tool_sets
from cloche_codegen.load import SchemaError
from tests.codegen.schemas import real


def _emitted(folder: Path, readme: str) -> str:
    project = folder / "packages/cli"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (project / "README.md").write_text(readme)
    library = real()
    text, _sources = publishing.emit(library, tool_sets(library), folder)["server.json"]
    return text


def test_the_entry_of_the_registry_has_the_name_of_the_readme(tmp_path: Path) -> None:
    entry = json.loads(_emitted(tmp_path, "# x\n<!-- mcp-name: io.github.me/my-server -->\n"))
    assert (entry["name"], entry["version"]) == ("io.github.me/my-server", "1.2.3")


@pytest.mark.parametrize("name", ["", "noslash", "two/slashes/here", "odd name/x", f"a/{'b' * 199}"])
def test_a_name_that_the_registry_would_refuse_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SchemaError, match="mcp-name"):
        _emitted(tmp_path, f"<!-- mcp-name: {name} -->\n")
