"""Leases: who reads which layers. A layer that is leased stays on the disk when it is no longer in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .manifest import Manifest


@dataclass(slots=True)
class _Lease:
    held: Manifest
    current: tuple[str, ...]
    """Layers in force that show the same as those held: a squash moves it on, a migration makes both equal."""


class Leases:
    """The manifests that live sessions and exports read."""

    def __init__(self) -> None:
        self._held: dict[str, _Lease] = {}

    def take(self, holder: str, manifest: Manifest) -> None:
        """Keep the layers of this manifest, which is in force, for the holder."""
        self._held[holder] = _Lease(manifest, manifest.ids)

    def moved(self, holder: str, manifest: Manifest) -> Manifest:
        """The holder reads the layers in force now that show what it has read so far."""
        lease = self._held[holder]
        wanted = set(lease.current)
        lease.held = Manifest(manifest.version, tuple(each for each in manifest.layers if each.layer_id in wanted))
        return lease.held

    def hold(self, holder: str, manifest: Manifest) -> None:
        """Keep the layers of this manifest for somebody who is soon done: a squash may reach across."""
        self._held[holder] = _Lease(manifest, ())

    def give_up(self, holder: str) -> None:
        """Keep nothing more for the holder."""
        self._held.pop(holder, None)

    def of(self, holder: str) -> Manifest | None:
        """Return what the holder reads."""
        lease = self._held.get(holder)
        return lease.held if lease is not None else None

    def current(self, holder: str) -> tuple[str, ...]:
        """Return the layers in force that show what the holder reads."""
        return self._held[holder].current

    def holders(self, layer_ids: Iterable[str]) -> list[str]:
        """Return who reads one of these layers."""
        wanted = set(layer_ids)
        return sorted(holder for holder, lease in self._held.items() if wanted.intersection(lease.held.ids))

    def layer_ids(self) -> set[str]:
        """Return every layer that somebody reads."""
        return {layer_id for lease in self._held.values() for layer_id in lease.held.ids}

    def newest(self) -> set[str]:
        """Return the newest layer of each holder, as it is in force: a squash must not reach across it."""
        return {lease.current[0] for lease in self._held.values() if lease.current}

    def replaced(self, blocks: Mapping[str, Sequence[str]]) -> None:
        """Layers in force became one each: squashed id to those that it replaces."""
        first = {replaced[0]: (new, len(replaced)) for new, replaced in blocks.items()}
        for lease in self._held.values():
            chain: list[str] = []
            at = 0
            while at < len(lease.current):
                new, count = first.get(lease.current[at], (lease.current[at], 1))
                chain.append(new)
                at += count
            lease.current = tuple(chain)
