"""`abx config`: settings that stay."""

import click
from click.shell_completion import CompletionItem

from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import Text
from cloche_cli.usage import Refused


class _Key(click.ParamType[str]):
    """The name of a setting. The names are loaded when one is needed, and not for `abx --help`."""

    name = "key"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _keys():
            raise Refused("enum", f"must be one of: {', '.join(_keys())}.")
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(key) for key in _keys() if key.startswith(incomplete)]


def _keys() -> list[str]:
    from cloche_contract.settings import SETTINGS

    return sorted(setting.key for setting in SETTINGS)


def _set(key: str, value: str | None) -> int:
    from cloche_cli.configuring import set_setting

    return set_setting(key, value)


def _unset(key: str) -> int:
    from cloche_cli.configuring import unset_setting

    return unset_setting(key)


def _get(key: str) -> int:
    from cloche_cli.configuring import get_setting

    return get_setting(key)


def _list(everything: bool) -> int:
    from cloche_cli.configuring import list_settings

    return list_settings(everything=everything)


def _path() -> int:
    from cloche_cli.configuring import show_paths

    return show_paths()


_KEY = click.Argument(["key"], type=_Key(), metavar="KEY")

set_ = command(
    "set",
    _set,
    help=(
        "Set a setting for this user. A secret goes into ~/.abx/.env, which only you can read, and is typed or piped "
        "in, never given as VALUE; everything else goes into ~/.abx/config.toml."
    ),
    examples=["abx config set provider local", "abx config set sandbox_api_key", "abx config set http_timeout 60"],
    params=[_KEY, click.Argument(["value"], type=Text(8192), required=False, metavar="[VALUE]")],
)

unset = command(
    "unset",
    _unset,
    help="Remove a setting from this user's files.",
    examples=["abx config unset provider"],
    params=[_KEY],
)

get = command(
    "get",
    _get,
    help="Show the value that counts. A secret is shown as asterisks. Exit status 4 where there is none.",
    examples=["abx config get provider", "abx --json config get log_level"],
    params=[_KEY],
)

list_ = command(
    "list",
    _list,
    help="Show what is set, and which layer it comes from. Secrets are shown as asterisks.",
    examples=["abx config list", "abx config list --all"],
    params=[click.Option(["-a", "--all", "everything"], is_flag=True, help="What is not set as well.")],
)

path = command(
    "path",
    _path,
    help="Show the files: that of settings, and that of secrets.",
    examples=["abx config path", "abx --json config path"],
)

config = LazyGroup(
    "config",
    help="Settings that stay. A variable of the environment wins over them.",
    examples=["abx config set provider local", "abx config list"],
    lazy={
        "set": "cloche_cli.commands.config:set_",
        "unset": "cloche_cli.commands.config:unset",
        "get": "cloche_cli.commands.config:get",
        "list": "cloche_cli.commands.config:list_",
        "path": "cloche_cli.commands.config:path",
    },
)
