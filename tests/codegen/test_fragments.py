"""One schema for each feature that model generators get wrong: generated, imported, type-checked, round-tripped."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

from cloche_codegen.emit import models
from cloche_codegen.load import Document, Library, load
from cloche_codegen.publish import inline
from tests.codegen.schemas import ROOT

FRAGMENTS = ROOT / "codegen" / "fragments"


def _library(base: Path) -> Library:
    (base / "CONTRACT_VERSION").write_text("0\n", encoding="utf-8")
    shutil.copytree(FRAGMENTS / "common", base / "common")
    return load(base)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return _library(tmp_path_factory.mktemp("fragments"))


@pytest.fixture(scope="module")
def generated(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("generated")
    for path, (text, _) in models.emit(library, [], "fragments").items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return target


def _names() -> list[str]:
    return sorted(path.stem for path in (FRAGMENTS / "common").glob("*.json"))


def _model(generated: Path, document: Document) -> tuple[type[pydantic.BaseModel], dict[str, Any]]:
    path = generated / "fragments" / "common" / f"{document.stem}.py"
    spec = importlib.util.spec_from_file_location(f"fragment_{document.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations are strings: pydantic looks them up in the module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    name = "".join(part.capitalize() for part in document.stem.split("_"))
    return getattr(module, name), document.defs[name]


@pytest.mark.parametrize("name", _names())
def test_model_and_schema_agree_on_every_example(library: Library, generated: Path, name: str) -> None:
    document = library.document(f"common/{name}.json")
    model, node = _model(generated, document)
    validator: Any = jsonschema.Draft202012Validator(inline(library, node, document.path))
    for example in node["examples"]:
        validator.validate(example)
        assert isinstance(model.model_validate(example), model)
    for case in node["x-counterexamples"]:
        assert not validator.is_valid(case["value"])
        with pytest.raises(pydantic.ValidationError):
            model.model_validate(case["value"])


@pytest.mark.parametrize("name", [each for each in _names() if each != "secret_text"])
def test_what_was_given_comes_back_and_nothing_else(library: Library, generated: Path, name: str) -> None:
    model, node = _model(generated, library.document(f"common/{name}.json"))
    for example in node["examples"]:
        dumped = model.model_validate(example).model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert dumped == example


def test_what_was_left_out_is_not_null(library: Library, generated: Path) -> None:
    model, _ = _model(generated, library.document("common/absent_and_null.json"))
    dumped = model.model_validate({"may_be_null": None}).model_dump(mode="json")
    assert dumped == {"may_be_null": None, "may_be_both": None}


def test_a_secret_does_not_show_itself(library: Library, generated: Path) -> None:
    model, node = _model(generated, library.document("common/secret_text.json"))
    value = model.model_validate(node["examples"][0])
    assert "hunter2" not in repr(value) + value.model_dump_json()


USE = """
from fragments.common.absent_and_null import AbsentAndNull
from fragments.common.default_value import DefaultValue
from fragments.common.map_of_text import MapOfText
from fragments.common.text_list import TextList

count: int = DefaultValue(flag=True).count
words: list[str] = TextList(words=["a", "b"]).words
labels: dict[str, str] = MapOfText(labels={"a": "b"}).labels
nothing: str | None = AbsentAndNull(may_be_null=None).may_be_null
"""


def test_generated_fragments_and_their_use_are_clean_in_strict_mode(generated: Path) -> None:
    (generated / "use.py").write_text(USE, encoding="utf-8")
    (generated / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "strict", "pythonVersion": "3.10"}', encoding="utf-8"
    )
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(generated)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "0 errors" in done.stdout, done.stdout
