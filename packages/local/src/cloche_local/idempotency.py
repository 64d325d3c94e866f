"""One sandbox per idempotency key, for all processes of a user."""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio

from cloche_contract.provider import CreateRequest
from cloche_local.state import try_lock

_RETRY_S = 0.005


def marks(request: CreateRequest, key: str) -> tuple[str, str]:
    """`(hash of the key, that and the hash of the arguments)`: neither can be turned back into values."""
    arguments: Mapping[str, object] = request.model_dump(exclude={"idempotency_key"})
    key_hash = hashlib.sha256(key.encode()).hexdigest()
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True, default=str).encode()).hexdigest()
    return key_hash, f"{key_hash}:{digest}"


@asynccontextmanager
async def held(path: str) -> AsyncGenerator[None]:
    """Hold a lock file of all processes of this user: between looking for a key and making its sandbox."""
    while True:
        with try_lock(path) as taken:
            if taken:
                yield
                return
        await anyio.sleep(_RETRY_S)
