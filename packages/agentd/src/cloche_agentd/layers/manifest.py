"""The manifest of a store: which layers are in force. A persisted format (schemas/layerstack/manifest.v1.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from cloche_agentd._gen import messages

from .failure import StoreDamaged

SCHEMA_VERSION: Final = 1
MANIFEST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. Its folder is named after its id, and by nothing else."""

    layer_id: str
    entries: int
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The layers above the base, newest first."""

    version: int
    layers: tuple[Layer, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, newest first."""
        return tuple(layer.layer_id for layer in self.layers)

    def next(self, layers: tuple[Layer, ...]) -> Manifest:
        """Return the manifest that follows this one."""
        return Manifest(self.version + 1, layers)

    def dump(self) -> bytes:
        """Return the file."""
        layers = [{"layer_id": each.layer_id, "entries": each.entries, "bytes": each.size} for each in self.layers]
        value = {"schema_version": SCHEMA_VERSION, "version": self.version, "layers": layers}
        return json.dumps(value, indent=1).encode() + b"\n"


EMPTY: Final = Manifest(1, ())


def parse(data: bytes) -> Manifest:
    """Read a manifest; of what it says, no path is used.

    Raises:
        StoreDamaged: it is no manifest that this version knows.
    """
    value = checked(data, "ManifestV1")
    layers = tuple(Layer(each["layer_id"], each["entries"], each["bytes"]) for each in value["layers"])
    if len({layer.layer_id for layer in layers}) != len(layers):
        raise StoreDamaged("the manifest names a layer twice")
    return Manifest(value["version"], layers)


def checked(data: bytes, message: str) -> dict[str, Any]:
    """Return the object in a file of the store, which must be what the schema says.

    Raises:
        StoreDamaged: it is not.
    """
    try:
        value: object = json.loads(data)
        messages.check(message, value)
    except (ValueError, RecursionError):
        raise StoreDamaged(f"{message} does not keep to its schema") from None
    return cast("dict[str, Any]", value)
