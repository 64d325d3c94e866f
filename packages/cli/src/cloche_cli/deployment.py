"""What a deployment of the MCP server is made with: options, then the environment, then what is configured.

Source: seed 001, part 7; checklist 189 to 200.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cloche_cli.usage import Refused
from cloche_sdk import Settings

DEFAULT_REGION: Final = "cn-hangzhou"
TOKEN_VARIABLE: Final = "ABX_MCP_AUTH_TOKEN"
KEY_VARIABLE: Final = "ABX_SANDBOX_API_KEY"
TEMPLATE_VARIABLE: Final = "ABX_DEFAULT_TEMPLATE"
PLATFORM_VARIABLES: Final = ("ABX_SANDBOX_BASE_URL", "ABX_SANDBOX_DOMAIN")

_PRINTABLE = re.compile(r"[\x21-\x7e]{1,4096}")
_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_REGION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FILE_LIMIT = 65_536
_TOKEN_BYTES = 32


@dataclass(frozen=True)
class DeployOptions:
    """What was said on the command line; None where nothing was."""

    name: str
    region: str | None
    template: str
    memory_mb: int
    timeout_s: int
    auth_token_file: str | None
    generate_token: bool
    session_affinity: bool
    sandbox_api_key: str | None = field(repr=False)
    custom_domain: str | None


@dataclass(frozen=True)
class Token:
    """The bearer token of a deployment, and where it comes from."""

    text: str = field(repr=False)
    source: str

    @property
    def masked(self) -> str:
        """Enough to tell two tokens apart, too little to use one."""
        return f"{self.text[:4]}…" if len(self.text) >= 24 else "…"


@dataclass(frozen=True)
class Deployment:
    """Everything that the artefact says, and the two secrets that it does not."""

    name: str
    region: str
    memory_mb: int
    timeout_s: int
    session_affinity: bool
    custom_domain: str | None
    variables: Mapping[str, str]
    token: Token
    api_key: str | None = field(repr=False)
    nameless_host: str = "<FC_HTTP_TRIGGER_URL>"
    """What stands for the host until somebody knows it."""

    @property
    def secret_variables(self) -> Mapping[str, str]:
        """Variables whose values are in no file of the artefact."""
        key = {} if self.api_key is None else {KEY_VARIABLE: self.api_key}
        return {TOKEN_VARIABLE: self.token.text, **key}

    @property
    def url(self) -> str:
        """Where clients will find it."""
        return f"https://{self.custom_domain or self.nameless_host}/mcp"


def resolve(
    options: DeployOptions,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    earlier_token: str | None = None,
    new_token: Callable[[], str] = lambda: secrets.token_hex(_TOKEN_BYTES),
) -> Deployment:
    """Put the layers together.

    Args:
        earlier_token: what an earlier run for the same folder generated; it stays, so that clients keep working.

    Raises:
        Refused: a value cannot be used; the text names where it was given.
    """
    region = options.region or settings.text("region") or DEFAULT_REGION
    if not _REGION.fullmatch(region):
        raise Refused(
            "pattern", "must be lower-case words and digits with hyphens, such as cn-hangzhou.", field="--region"
        )
    platform = {name: value for name in PLATFORM_VARIABLES if (value := environ.get(name, "").strip())}
    return Deployment(
        name=options.name,
        region=region,
        memory_mb=options.memory_mb,
        timeout_s=options.timeout_s,
        session_affinity=options.session_affinity,
        custom_domain=options.custom_domain,
        variables={TEMPLATE_VARIABLE: options.template, **platform},
        token=_token(options, settings, earlier_token, new_token),
        api_key=_api_key(options.sandbox_api_key or settings.text("sandbox_api_key")),
    )


def _token(options: DeployOptions, settings: Settings, earlier: str | None, new_token: Callable[[], str]) -> Token:
    if options.auth_token_file is not None:
        if options.generate_token:
            raise Refused("exclusive", "takes no --auth-token-file: one of both.", field="--generate-token")
        return Token(_read_token(Path(options.auth_token_file)), "file")
    if options.generate_token:
        return Token(new_token(), "generated")
    configured = settings.text("mcp_auth_token")
    if configured is not None:
        return Token(_printable(configured, TOKEN_VARIABLE), "environment")
    return Token(new_token(), "generated") if earlier is None else Token(earlier, "earlier run")


def _api_key(key: str | None) -> str | None:
    return None if key is None else _printable(key, "--sandbox-api-key")


def _printable(text: str, field_name: str) -> str:
    if not _PRINTABLE.fullmatch(text):
        raise Refused("pattern", "must be 1 to 4096 visible ASCII characters.", field=field_name)
    return text


def _read_token(path: Path) -> str:
    """The one token of a file: alone, or as the NAME=TOKEN that `abx mcp start` reads."""
    try:
        with path.open("rb") as file:
            lines = file.read(_FILE_LIMIT).decode("ascii").splitlines()
    except FileNotFoundError as error:
        raise Refused("not_found", "names a file that does not exist.", field="--auth-token-file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Refused("readable", "names a file that cannot be read as text.", field="--auth-token-file") from error
    found = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
    if len(found) != 1:
        raise Refused("single", "must name a file with one token on one line.", field="--auth-token-file")
    name, _, token = found[0].partition("=")
    # Base64 ends with `=`: that is padding, not the end of a name.
    named = bool(_PRINCIPAL.fullmatch(name.strip()) and token.strip().strip("="))
    return _printable(token.strip() if named else found[0], "The token in --auth-token-file")
