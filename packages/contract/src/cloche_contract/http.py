"""The REST API of a sandbox platform: its messages, its routes, its client over any transport."""

import json
import pkgutil
from typing import TYPE_CHECKING, Any, cast

from cloche_contract._gen import http_routes as _routes
from cloche_contract._gen.client.platform import PlatformClient
from cloche_contract._gen.exports import http as _exports
from cloche_contract.wire.rest import Answer, Page, PlatformTransport, Route

from ._gen.http_routes import *  # noqa: F403 - the names of the contract

if TYPE_CHECKING:
    from ._gen.exports.http import *  # noqa: F403 - the names of the contract

__all__ = ["Answer", "Page", "PlatformClient", "PlatformTransport", "Route", "openapi"]
__all__ += _routes.__all__
__all__ += _exports.__all__


def openapi() -> dict[str, Any]:
    """The API as an OpenAPI 3.1 document, generated from schemas/http/platform.json."""
    raw = pkgutil.get_data("cloche_contract._gen", "data/openapi.json")
    return cast("dict[str, Any]", json.loads(raw or b"{}"))


def __getattr__(name: str) -> object:
    return getattr(_exports, name)
