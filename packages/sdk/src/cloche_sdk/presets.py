"""Where a sandbox platform is: its addresses, and how it takes the key. Data, one entry per platform.

Source: systems facts 2.3, 2.6; agent-protocol 1.1, 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cloche_contract.errors import (
    AccessKeyRefused,
    AuthenticationFailed,
    ClocheError,
    ConfigurationInvalid,
    UnsupportedOperation,
)
from cloche_contract.http import HEADER_API_KEY

__all__ = ["ALICLOUD_EXPRESS", "CLOUD", "E2B", "Addresses", "Preset"]

_BEARER = "authorization"
_NO_KEY: type[ClocheError] = AuthenticationFailed
_AGENT_PORT, _INTERPRETER_PORT = 49983, 49999
# Below these, all sandboxes have one host, which routes by headers.
_SHARED_HOST = frozenset(
    {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev", "e2b-tango.dev", "e2b-juliett.dev", "foxtrot-2.e2b.dev"}
)


@dataclass(frozen=True)
class Preset:
    """One platform. `{region}` stands for the region in its addresses; without one, it has no regions.

    `sizes` says whether a create may ask for CPU and memory; elsewhere the template decides. `access_keys` are
    variables of credentials that its other services take, and its sandboxes do not.
    """

    provider: str
    base_url: str
    domain: str
    key_headers: tuple[str, ...]
    region: str | None = None
    sizes: bool = False
    access_keys: tuple[str, ...] = ()

    def without_key(self, environ: Mapping[str, str]) -> type[ClocheError]:
        """What is wrong where there is no API key."""
        return AccessKeyRefused if any(environ.get(name, "").strip() for name in self.access_keys) else _NO_KEY

    def addresses(self, settings: Mapping[str, str], region: str | None = None) -> Addresses:
        """Its addresses under these settings. An explicit one is taken as it is, nothing is derived from it.

        Args:
            region: instead of the configured one.

        Raises:
            UnsupportedOperation: another region is asked for than the address that is configured serves.
            ConfigurationInvalid: an address is none.
        """
        configured = settings.get("region") or self.region
        wanted = region or configured
        base_url = settings.get("sandbox_base_url")
        if wanted != configured and (base_url is not None or self.region is None):
            raise UnsupportedOperation(capability="region")
        names = {"region": wanted or ""}
        base_url = base_url or self.base_url.format_map(names)
        if not base_url.startswith(("https://", "http://")):
            raise ConfigurationInvalid(setting="ABX_SANDBOX_BASE_URL")
        return Addresses(
            base_url=base_url,
            region=wanted,
            derived_domain=self.domain.format_map(names),
            domain=settings.get("sandbox_domain"),
            url=settings.get("sandbox_url"),
        )


@dataclass(frozen=True)
class Addresses:
    """Where one region of a platform answers, and where its sandboxes do.

    `domain` and `url` are what is configured, and win over what the platform answers.
    """

    base_url: str
    region: str | None
    derived_domain: str
    domain: str | None = None
    url: str | None = None

    def agent(self, sandbox_id: str, told_domain: str | None) -> tuple[str, str | None]:
        """Base URL of a sandbox's agent, and of its interpreter where that is another one."""
        if self.url is not None:
            return self.url.rstrip("/"), None
        domain = self.domain or told_domain or self.derived_domain
        if domain in _SHARED_HOST:
            return f"https://sandbox.{domain}", None
        return f"https://{_AGENT_PORT}-{sandbox_id}.{domain}", f"https://{_INTERPRETER_PORT}-{sandbox_id}.{domain}"


ALICLOUD_EXPRESS = Preset(
    "alicloud-express",
    "https://api.{region}.e2b.fc.aliyuncs.com",
    "{region}.e2b.fc.aliyuncs.com",
    (_BEARER,),
    region="cn-hangzhou",
    sizes=True,
    access_keys=("ALICLOUD_ACCESS_KEY_ID", "ALICLOUD_ACCESS_KEY_SECRET"),
)
E2B = Preset("e2b", "https://api.e2b.app", "e2b.app", (HEADER_API_KEY.lower(),))
# The default platform, or whatever ABX_SANDBOX_BASE_URL names: it takes the key in either header.
CLOUD = replace(ALICLOUD_EXPRESS, provider="cloud", key_headers=(_BEARER, HEADER_API_KEY.lower()))
