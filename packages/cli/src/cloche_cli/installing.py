"""`abx mcp install`: our entry into the file of one client, or out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from cloche_cli.clients.change import Change, install, plan_install, plan_remove, uninstall
from cloche_cli.clients.entry import NAME, TOKEN_VARIABLE, Server, add_command, entry, link, public_entry
from cloche_cli.clients.places import Surroundings, config_path
from cloche_cli.clients.receipt import Receipts
from cloche_cli.clients.table import Client, Scope, clients
from cloche_cli.extras import require
from cloche_cli.invocation import Invocation, current
from cloche_cli.own_command import own_command
from cloche_cli.tool_choice import chosen, names
from cloche_cli.usage import Refused
from cloche_contract.registry import ToolFilter, published_set
from cloche_sdk import Settings, load_settings
from cloche_sdk.providers import Doors

MASK: Final = "********"
_FOR_A_PERSON_TO_EDIT: Final = ("broken", "unsafe", "encoding")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class InstallOptions:
    """What was asked for on the command line."""

    target: str
    scope: Scope | None
    transport: str
    url: str | None
    provider: str | None
    tools: tuple[str, ...]
    exclude_tools: tuple[str, ...]
    read_only: bool
    dry_run: bool
    remove: bool
    show: bool


def run(options: InstallOptions) -> int:
    """Install, remove or show.

    Raises:
        Refused: an option does not fit, or the file cannot be changed without harm.
    """
    client = clients()[options.target]
    scope = _scope(client, options.scope)
    around = Surroundings.own()
    receipts = Receipts(around.environ, around.home)
    if options.remove:
        return _remove(plan_remove(client, scope, around, receipts), receipts, options, current())
    settings = load_settings()
    tools = chosen(options.tools, options.exclude_tools, options.read_only)
    server = _server(client, options, settings)
    if options.show:
        return _show(client, scope, server, current())
    change = _planned(client, scope, server, around)
    return _Installation(change, server, receipts, tools, settings, current()).carry_out(dry_run=options.dry_run)


def _planned(client: Client, scope: Scope, server: Server, around: Surroundings) -> Change:
    """The change; where the file cannot be edited, a person is shown what to paste into it.

    Raises:
        Refused: it cannot.
    """
    try:
        return plan_install(client, scope, entry(client, scope, server), around)
    except Refused as error:
        if error.rule in _FOR_A_PERSON_TO_EDIT:
            block = _block(client, public_entry(client, scope, server))
            current().note(f"To be put into {around.shown(config_path(client, scope, around))} by hand:\n\n{block}")
        raise


def _scope(client: Client, wanted: Scope | None) -> Scope:
    scope = wanted or client.default_scope
    if scope not in client.files:
        raise Refused("scope", f"must be {client.default_scope}: {client.title} has no other file.", field="--scope")
    return scope


def _server(client: Client, options: InstallOptions, settings: Settings) -> Server:
    if options.transport == "http":
        return _remote(client, options, settings)
    if options.url is not None:
        raise Refused("transport", "needs --transport http.", field="--url")
    require("mcp", "cloche_mcp_stdio")  # an entry whose server cannot start helps nobody
    command, *start = own_command()
    env = {} if options.provider is None else {"ABX_PROVIDER": Doors().provider(options.provider)}
    words = (*start, "mcp", "start", *_filter_words(options))
    return Server(command=command, args=words, env=env, key=settings.text("sandbox_api_key"))


def _filter_words(options: InstallOptions) -> list[str]:
    words: list[str] = []
    for option, given in (("--tools", options.tools), ("--exclude-tools", options.exclude_tools)):
        words += [option, ",".join(names(given))] if given else []
    return [*words, "--read-only"] if options.read_only else words


def _remote(client: Client, options: InstallOptions, settings: Settings) -> Server:
    if client.http is None:
        raise Refused("transport", f"must be stdio: {client.title} {client.no_http}", field="--transport")
    if options.provider or options.tools or options.exclude_tools or options.read_only:
        raise Refused("transport", "are options of the server: give them to its `abx mcp start`.", field="These")
    token = settings.text("mcp_auth_token")
    return Server(url=_usable_url(options.url, with_token=token is not None), token=token)


def _usable_url(url: str | None, *, with_token: bool) -> str:
    if url is None:
        raise Refused("required", "is missing: it says where the server is.", field="--url")
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        parts = urlsplit("")
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.fragment or not plain:
        raise Refused(
            "format",
            "must be an http or https address without user and fragment, such as https://HOST/mcp.",
            field="--url",
        )
    if with_token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise Refused("insecure", "must begin with https: a token goes with each request.", field="--url")
    return url


def _show(client: Client, scope: Scope, server: Server, invocation: Invocation) -> int:
    """Print what a person could do by hand; nothing is written."""
    document = _by_hand(client, scope, server)
    if invocation.json:
        invocation.emit(document)
        return 0
    invocation.write(_block(client, document["entry"]))
    for label, text in (("command", document["add_command"]), ("link", document["link"])):
        if text is not None:
            invocation.write(f"\n{label}: {text}\n")
    return 0


def _block(client: Client, shown: Mapping[str, Any]) -> str:
    """A file of the client that holds nothing but the entry."""
    from cloche_cli.clients.formats import editor

    return editor(client.format).new((*client.path, NAME), shown)


def _by_hand(client: Client, scope: Scope, server: Server) -> dict[str, Any]:
    return {
        "client": client.id,
        "scope": scope,
        "entry": public_entry(client, scope, server),
        "add_command": add_command(client, scope, server),
        "link": link(client, scope, server),
    }


@dataclass(frozen=True)
class _Installation:
    """One planned installation, and how it is told."""

    change: Change
    server: Server
    receipts: Receipts
    tools: ToolFilter
    settings: Settings
    invocation: Invocation

    def carry_out(self, *, dry_run: bool) -> int:
        if dry_run:
            return _tell_plan(self.change, self._secret, self.invocation)
        if not self.change.is_none:
            install(self.change, self.receipts, private=self.change.scope == "user")
        if self.invocation.json:
            self.invocation.emit(self._document())
        else:
            self.invocation.write(self._text())
            for note in self._notes():
                self.invocation.note(f"note: {note}")
        return 0

    @property
    def _secret(self) -> str | None:
        """The key or token, where the file gets one."""
        secret = self.server.key if self.server.url is None else self.server.token
        return secret if self.change.scope in self.change.client.secrets else None

    def _titles(self) -> Mapping[str, str]:
        if self.server.url is not None:
            return {}
        offered = self.tools.apply(published_set("sandbox")).tools
        return {name: tool["title"] for name, tool in offered.items()}

    def _text(self) -> str:
        change = self.change
        if change.is_none:
            return f"{change.shown} has this server already; nothing was changed.\n"
        text = f"MCP Server config written to {change.shown}\n\n"
        titles = self._titles()
        if titles:
            width = max(map(len, titles))
            lines = (f"  • {name:<{width}} — {title}\n" for name, title in titles.items())
            text += "Registered tools:\n" + "".join(lines) + "\n"
        return f"{text}Please restart {change.client.title} to apply changes.\n"

    def _document(self) -> dict[str, Any]:
        change = self.change
        backup = self.receipts.backup_path(change.file.target)
        return {
            **_by_hand(change.client, change.scope, self.server),
            "file": str(change.file.path),
            "changed": not change.is_none,
            "backup": str(backup) if backup.exists() else None,
            "transport": "stdio" if self.server.url is None else "http",
            "tools": list(self._titles()),
            "notes": self._notes(),
        }

    def _notes(self) -> list[str]:
        client, scope = self.change.client, self.change.scope
        notes: list[str] = []
        if self._secret and self.change.file.readable_by_others:
            notes.append(f"{self.change.shown} now holds a key and can be read by others; `chmod 600` keeps it to you.")
        if scope not in client.secrets:
            if self.server.key and self.settings.layer("sandbox_api_key") != "~/.abx/.env":
                notes.append(
                    "the key is not written into this file; `abx config set sandbox_api_key` keeps it for the server."
                )
            if self.server.token and client.reference is None:
                notes.append(f"{client.title} cannot name a variable there; add the header with the token by hand.")
            elif self.server.token:
                notes.append(f"{client.title} takes the token from {TOKEN_VARIABLE} of its own environment.")
        return notes


def _remove(change: Change, receipts: Receipts, options: InstallOptions, invocation: Invocation) -> int:
    if options.dry_run:
        return _tell_plan(change, None, invocation)
    uninstall(change, receipts)
    if invocation.json:
        place = {"client": change.client.id, "scope": change.scope, "file": str(change.file.path)}
        invocation.emit({**place, "changed": not change.is_none})
    elif change.is_none:
        invocation.write(f"{change.shown} has no such server; nothing was changed.\n")
    else:
        invocation.write(
            f"MCP Server config removed from {change.shown}\n\nPlease restart {change.client.title} to apply changes.\n"
        )
    return 0


def _tell_plan(change: Change, secret: str | None, invocation: Invocation) -> int:
    diff = change.diff()
    if secret:
        diff = diff.replace(secret, MASK)
    if invocation.json:
        place = {"client": change.client.id, "scope": change.scope, "file": str(change.file.path)}
        invocation.emit({**place, "dry_run": True, "changed": not change.is_none, "diff": diff})
    else:
        invocation.write(diff or f"{change.shown} would not be changed.\n")
    return 0
