"""Whose sandboxes a session may know of: those that its principal made, or all where there are no principals.

What a principal makes is labelled with its name and its lifetime, so that another process, and the same one
after a restart, knows whose it is and what a use renews it to. What is not a principal's own is not found, as
if it did not exist.

Source: decisions D15, D16; security.md, "sandbox handles are not secrets: check the principal on each call".
"""

from __future__ import annotations

from cloche_contract.errors import SandboxNotFound
from cloche_contract.lifecycle import SandboxMetadata, SandboxRecord, SandboxStatus, disclose
from cloche_contract.provider import CreateRequest, GetRequest, ListRequest, SandboxProvider

from .providers import ProviderPool, Reference
from .requests import build

__all__ = ["PRINCIPAL_LABEL", "Visibility"]

PRINCIPAL_LABEL = "cloche.principal"
LIFETIME_LABEL = "cloche.lifetime"
KNOWN_KEPT = 1_000
LONGEST_LIFETIME_S = 86_400
PAGE = 100


class Visibility:
    """What one principal sees; None sees everything that the account sees."""

    def __init__(self, pool: ProviderPool, principal: str | None) -> None:
        self._pool = pool
        self._principal = principal
        # Labels never change, so that a sandbox is looked up once. The value is its lifetime.
        self._known: dict[Reference, int | None] = {}

    @property
    def limited(self) -> bool:
        """Whether there is anything that this session must not see."""
        return self._principal is not None

    def labelled(self, request: CreateRequest) -> CreateRequest:
        """The request, with the name of the principal and the lifetime on what it makes."""
        if self._principal is None:
            return request
        labels = request.model_dump().get("metadata", {})
        own = {PRINCIPAL_LABEL: self._principal, LIFETIME_LABEL: str(request.timeout)}
        return request.model_copy(update={"metadata": {**labels, **own}})

    async def check(self, reference: Reference) -> None:
        """Let a sandbox pass that this principal made.

        Raises:
            SandboxNotFound: there is none, or another principal made it; which of the two cannot be told apart.
        """
        if self._principal is None or reference in self._known:
            return
        provider = await self._pool.get(reference.provider)
        try:
            record = await provider.get(GetRequest(sandbox_id=reference.sandbox_id))
        except SandboxNotFound:
            raise SandboxNotFound from None
        if not self._sees(record):
            raise SandboxNotFound
        if len(self._known) >= KNOWN_KEPT:
            del self._known[next(iter(self._known))]
        self._known[reference] = _lifetime_s(_labels(record))

    def lifetime_s(self, reference: Reference) -> int | None:
        """What a use of a sandbox that passed renews its lifetime to; None where nothing is to be renewed."""
        return self._known.get(reference)

    async def page(
        self, provider_name: str, status: SandboxStatus | None, limit: int, offset: int, region: str | None
    ) -> list[SandboxMetadata]:
        """One page of what this principal made: `offset` and `limit` count in that."""
        provider = await self._pool.get(provider_name)
        mine: list[SandboxRecord] = []
        skipped = 0
        while len(mine) < offset + limit:
            records = await self._records(provider, status, skipped, region)
            mine += [record for record in records if self._sees(record)]
            skipped += PAGE
            if len(records) < PAGE:
                break
        return [disclose(record) for record in mine[offset : offset + limit]]

    @staticmethod
    async def _records(
        provider: SandboxProvider, status: SandboxStatus | None, offset: int, region: str | None
    ) -> list[SandboxRecord]:
        request = build(ListRequest, status=status, limit=PAGE, offset=offset, region=region)
        return list((await provider.list(request)).sandboxes)

    def _sees(self, record: SandboxRecord) -> bool:
        return _labels(record).get(PRINCIPAL_LABEL) == self._principal


def _labels(record: SandboxRecord) -> dict[str, str]:
    return record.model_dump(include={"user_metadata"}).get("user_metadata", {})


def _lifetime_s(labels: dict[str, str]) -> int | None:
    text = labels.get(LIFETIME_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:6]) <= LONGEST_LIFETIME_S else None
