"""MANIFEST.json: the hash of every schema and output, and which sources each output comes from. No times."""

import hashlib
import json
from importlib.metadata import version

from cloche_codegen.load import Library

_GENERATORS = ("datamodel-code-generator", "jinja2", "ruff")


def emit(library: Library, outputs: dict[str, tuple[str, tuple[str, ...]]]) -> str:
    """Return the text of the manifest; `outputs` is text and sources by path.

    Only schemas are inputs: of the SDK's modules nothing but signatures counts, and those are in the output.
    """
    inputs = {f"schemas/{path}": doc.sha256 for path, doc in library.documents.items()}
    inputs["schemas/CONTRACT_VERSION"] = _digest((library.root / "CONTRACT_VERSION").read_bytes())
    found = {
        "contract_version": library.contract_version,
        "generators": {name: version(name) for name in _GENERATORS},
        "inputs": dict(sorted(inputs.items())),
        "outputs": {
            path: {"sha256": _digest(text.encode()), "sources": list(sources)}
            for path, (text, sources) in sorted(outputs.items())
        },
    }
    return json.dumps(found, indent=1) + "\n"


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
