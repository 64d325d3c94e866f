"""Secret values do not leave in the output of a task, however the writes that carry them are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from . import limits

REPLACEMENT: Final = b"[REDACTED]"
_SECRET_NAME: Final = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_PROBE_BYTES: Final = 4


def secrets_of(envs: Mapping[str, str]) -> list[bytes]:
    """Return the values of the variables that are named like secrets.

    Very short values are no secrets: replacing them would only garble the output.
    """
    named = [value.encode() for name, value in envs.items() if _SECRET_NAME.search(name)]
    return [value for value in named if len(value) >= limits.SECRET_BYTES]


class Redactor:
    """Replaces secrets in a stream. What may be the beginning of one waits until the next piece tells."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        # The longest first: a secret may hold another one.
        self._secrets = sorted(set(secrets), key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what may be shown now."""
        if not self._secrets:
            return data
        text = self._held + data
        keep = self._uncut(text, min((self._beginning(text, secret) for secret in self._secrets), default=len(text)))
        self._held = text[keep:]
        return self._replaced(text[:keep])

    def finish(self) -> bytes:
        """Return what was held back: it has become all that it will be."""
        held, self._held = self._held, b""
        return self._replaced(held)

    def _replaced(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, REPLACEMENT)
        return text

    @staticmethod
    def _beginning(text: bytes, secret: bytes) -> int:
        """Return where the end of the text begins that may grow into this secret; the length where none does."""
        start = max(0, len(text) - len(secret) + 1)
        while (start := text.find(secret[:_PROBE_BYTES], start)) >= 0:
            if secret.startswith(text[start:]):
                return start
            start += 1
        for left in range(min(_PROBE_BYTES - 1, len(text)), 0, -1):
            if text.endswith(secret[:left]):
                return len(text) - left
        return len(text)

    def _uncut(self, text: bytes, keep: int) -> int:
        """Return a place at or before `keep` that lies inside of no secret."""
        moved = True
        while moved:
            moved = False
            for secret in self._secrets:
                start = text.find(secret, max(0, keep - len(secret) + 1))
                if 0 <= start < keep < start + len(secret):
                    keep, moved = start, True
        return keep
