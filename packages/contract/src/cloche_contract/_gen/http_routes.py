"""The routes of a sandbox platform, and its headers. Generated from schemas/http/platform.json; do not edit."""

from typing import Final

from cloche_contract.wire.rest import Route

CREATE_SANDBOX: Final = Route(
    name="create_sandbox",
    method="POST",
    path="/v2/sandboxes",
    query=(),
    success=(201,),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "template_not_found",
        408: "provider_timeout",
        409: "idempotency_conflict",
        429: "quota_exceeded",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Make a sandbox and answer when it runs."""
CREATE_SANDBOX_V1: Final = Route(
    name="create_sandbox_v1",
    method="POST",
    path="/sandboxes",
    query=(),
    success=(201,),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "template_not_found",
        408: "provider_timeout",
        409: "idempotency_conflict",
        429: "quota_exceeded",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Make a sandbox, on platforms that do not have the second version."""
LIST_SANDBOXES: Final = Route(
    name="list_sandboxes",
    method="GET",
    path="/v2/sandboxes",
    query=(
        "limit",
        "metadata",
        "nextToken",
        "state",
    ),
    success=(200,),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""One page of sandboxes, newest first; the header X-Next-Token names the next page."""
LIST_SANDBOXES_V1: Final = Route(
    name="list_sandboxes_v1",
    method="GET",
    path="/sandboxes",
    query=(
        "limit",
        "offset",
        "status",
    ),
    success=(200,),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""One page of sandboxes, on platforms that do not have the second version."""
GET_SANDBOX: Final = Route(
    name="get_sandbox",
    method="GET",
    path="/sandboxes/{sandbox_id}",
    query=(),
    success=(200,),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""What the platform knows about a sandbox. Never resumes it."""
DELETE_SANDBOX: Final = Route(
    name="delete_sandbox",
    method="DELETE",
    path="/sandboxes/{sandbox_id}",
    query=(),
    success=(
        200,
        204,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Destroy a sandbox."""
SET_TIMEOUT: Final = Route(
    name="set_timeout",
    method="POST",
    path="/sandboxes/{sandbox_id}/timeout",
    query=(),
    success=(
        200,
        204,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Let a sandbox live for so many seconds from now."""
CONNECT_SANDBOX: Final = Route(
    name="connect_sandbox",
    method="POST",
    path="/v2/sandboxes/{sandbox_id}/connect",
    query=(),
    success=(
        200,
        201,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Answer with what it takes to use a sandbox; a paused one is resumed."""
CONNECT_SANDBOX_V1: Final = Route(
    name="connect_sandbox_v1",
    method="POST",
    path="/sandboxes/{sandbox_id}/connect",
    query=(),
    success=(
        200,
        201,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""The same, on platforms that do not have the second version."""
PAUSE_SANDBOX: Final = Route(
    name="pause_sandbox",
    method="POST",
    path="/sandboxes/{sandbox_id}/pause",
    query=(),
    success=(
        200,
        204,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        409: "sandbox_paused",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Stop a sandbox and keep what is in it."""
RESUME_SANDBOX: Final = Route(
    name="resume_sandbox",
    method="POST",
    path="/sandboxes/{sandbox_id}/resume",
    query=(),
    success=(
        200,
        201,
    ),
    statuses={
        400: "provider_failed",
        401: "authentication_failed",
        403: "permission_denied",
        404: "sandbox_not_found",
        408: "provider_timeout",
        429: "provider_unavailable",
        502: "provider_unavailable",
        503: "provider_unavailable",
        504: "provider_timeout",
    },
)
"""Let a paused sandbox go on, on platforms that have no connect."""

ROUTES: Final = (
    CREATE_SANDBOX,
    CREATE_SANDBOX_V1,
    LIST_SANDBOXES,
    LIST_SANDBOXES_V1,
    GET_SANDBOX,
    DELETE_SANDBOX,
    SET_TIMEOUT,
    CONNECT_SANDBOX,
    CONNECT_SANDBOX_V1,
    PAUSE_SANDBOX,
    RESUME_SANDBOX,
)

HEADER_API_KEY: Final = "X-API-KEY"
"""Key of the account, where the platform does not take it as a bearer token."""
HEADER_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
"""The same key and body answer the same sandbox."""
HEADER_NEXT_TOKEN: Final = "X-Next-Token"
"""In an answer: what names the next page. Absent or empty on the last."""
HEADER_SANDBOX_ID: Final = "E2b-Sandbox-Id"
"""Routes a request to the agent of this sandbox."""

__all__ = [
    "CONNECT_SANDBOX",
    "CONNECT_SANDBOX_V1",
    "CREATE_SANDBOX",
    "CREATE_SANDBOX_V1",
    "DELETE_SANDBOX",
    "GET_SANDBOX",
    "HEADER_API_KEY",
    "HEADER_IDEMPOTENCY_KEY",
    "HEADER_NEXT_TOKEN",
    "HEADER_SANDBOX_ID",
    "LIST_SANDBOXES",
    "LIST_SANDBOXES_V1",
    "PAUSE_SANDBOX",
    "RESUME_SANDBOX",
    "ROUTES",
    "SET_TIMEOUT",
]
