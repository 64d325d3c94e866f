"""Who calls: bearer tokens, each of which names a principal.

Tokens are kept as digests and compared in constant time, all of them at every request. A
token that is configured and blank is an error: it must never mean "no token needed".

Source: checklist 161, 301; security.md ("no default secrets", "guard error → command runs anyway").
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cloche_contract.errors import ConfigurationInvalid

TOKEN_VARIABLE = "ABX_MCP_AUTH_TOKEN"
TOKEN_FILE_VARIABLE = "ABX_MCP_AUTH_TOKEN_FILE"
SINGLE_PRINCIPAL = "default"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FILE_LIMIT = 1_048_576
# A header of another form carries no token of ours; the bound keeps hashing cheap.
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,4096}) *")


class NotAuthorized(Exception):
    """A request whose caller is not known, or may not call; `challenge` is what WWW-Authenticate says."""

    def __init__(self, status: int, challenge: str) -> None:
        super().__init__(status)
        self.status = status
        self.challenge = challenge


class CallersUnavailable(Exception):
    """It cannot be told now who calls: what would tell it does not answer."""


class Callers(Protocol):
    """Knows who calls."""

    async def identify(self, authorization: str | None) -> str:
        """The principal of an Authorization header.

        Raises:
            NotAuthorized: there is none.
            CallersUnavailable: it cannot be told now.
        """
        ...


class BearerTokens:
    """The tokens that are accepted, and the principal that each stands for."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """Take tokens by the name of their principal.

        Raises:
            ConfigurationInvalid: there is no token, or one is blank, or shared by two principals.
        """
        self._principals = [(name, _digest(token)) for name, token in tokens.items()]
        well_formed = all(_is_token(token) and _NAME.fullmatch(name) for name, token in tokens.items())
        if not tokens or not well_formed or len({digest for _, digest in self._principals}) < len(tokens):
            raise ConfigurationInvalid(setting=TOKEN_VARIABLE)

    def principal(self, authorization: str | None) -> str | None:
        """The principal of an Authorization header, or None where its token is none of ours."""
        token = bearer_token(authorization)
        if token is None:
            return None
        given = _digest(token)
        found = None
        for name, digest in self._principals:
            if hmac.compare_digest(given, digest):
                found = name
        return found

    async def identify(self, authorization: str | None) -> str:
        """The principal of a request.

        Raises:
            NotAuthorized: its token is none of ours.
        """
        found = self.principal(authorization)
        if found is None:
            raise NotAuthorized(401, "Bearer")
        return found


def bearer_token(authorization: str | None) -> str | None:
    """The token of an Authorization header, or None where it has none."""
    match = _BEARER.fullmatch(authorization or "")
    return None if match is None else match[1]


def _is_token(token: str) -> bool:
    return bool(token) and all("\x21" <= character <= "\x7e" for character in token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def read_token_file(path: Path) -> Mapping[str, str]:
    """Tokens of a file with lines `NAME=TOKEN`; empty lines and lines that start with `#` are left out.

    Raises:
        ConfigurationInvalid: it cannot be read, has a line of another form, or names a principal twice.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(_FILE_LIMIT).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationInvalid(setting=TOKEN_FILE_VARIABLE) from error
    found: dict[str, str] = {}
    for line in map(str.strip, lines):
        if not line or line.startswith("#"):
            continue
        name, equals, token = (part.strip() for part in line.partition("="))
        if not equals or name in found or not _NAME.fullmatch(name) or not _is_token(token):
            raise ConfigurationInvalid(setting=TOKEN_FILE_VARIABLE)
        found[name] = token
    if not found:
        raise ConfigurationInvalid(setting=TOKEN_FILE_VARIABLE)
    return found


def tokens_of(environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """The tokens that an environment configures, or None where it configures none.

    ABX_MCP_AUTH_TOKEN is one token, of the principal `default`; ABX_MCP_AUTH_TOKEN_FILE names a file with several.

    Raises:
        ConfigurationInvalid: a variable is set and blank, or what it names cannot be used.
    """
    single, file = environ.get(TOKEN_VARIABLE), environ.get(TOKEN_FILE_VARIABLE)
    if single is None and file is None:
        return None
    found: dict[str, str] = {}
    if file is not None:
        found.update(read_token_file(Path(file)))
    if single is not None:
        token = single.strip()
        if SINGLE_PRINCIPAL in found or not _is_token(token):
            raise ConfigurationInvalid(setting=TOKEN_VARIABLE)
        found[SINGLE_PRINCIPAL] = token
    return found
