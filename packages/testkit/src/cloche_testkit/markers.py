"""Values that must never be seen by a model, one for each confidential field of a record."""

from collections.abc import Iterable
from typing import Final

MARKERS: Final = {
    "url": "https://marker-url.invalid/",
    "agent.base_url": "https://marker-agent-base-url.invalid/",
    "agent.socket_path": "/marker-agent-socket-path",
    "agent.access_token": "marker-agent-access-token",
    "agent.version": "marker-agent-version",
    "account_id": "marker-account-id",
    "user_metadata": "marker-user-metadata",
    "lifecycle": "marker-lifecycle",
    "envs": "marker-envs",
}
"""Field of the record to the value that a marked provider puts there."""


def leaked_markers(text: str, *, allowed: Iterable[str] = ()) -> list[str]:
    """The fields whose markers stand in `text`, in order.

    Args:
        allowed: fields that may be seen, such as `url` in the answer of create_sandbox.
    """
    permitted = set(allowed)
    return [name for name, marker in MARKERS.items() if name not in permitted and marker in text]
