"""`abx config`: settings in files, and where the value that counts comes from. A secret is never shown."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from cloche_cli.clients import config_file
from cloche_cli.clients.config_file import Unusable
from cloche_cli.clients.edit import Broken, Unsafe
from cloche_cli.clients.places import Surroundings
from cloche_cli.env_file import with_variable
from cloche_cli.invocation import Invocation, current
from cloche_cli.toml_value import with_value
from cloche_cli.usage import Refused
from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.settings import SETTINGS, Setting
from cloche_sdk import Settings, load_settings

MASK: Final = "********"
_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_LONGEST: Final = 8192


def list_settings(*, everything: bool) -> int:
    """Tell what is set and where; with `everything` also what is not set."""
    from cloche_cli.tables import print_table

    settings = load_settings()
    documents = [_document(setting, settings) for setting in SETTINGS]
    shown = [one for one in documents if everything or one["layer"] not in (None, "default")]
    invocation = current()
    if invocation.json:
        invocation.emit({"settings": shown})
        return 0
    rows = [(one["key"], _text(one["value"]), one["layer"] or "-", one["env"]) for one in shown]
    print_table(("SETTING", "VALUE", "FROM", "VARIABLE"), rows, empty="Nothing is set; --all shows what can be.")
    return 0


def get_setting(key: str) -> int:
    """Tell the value that counts.

    Raises:
        Refused: nothing is set, and there is no default.
    """
    document = _document(_BY_KEY[key], load_settings())
    if document["value"] is None:
        fix = f"`abx config set {key}` gives it one."
        raise Refused("not_found", "has no value, and no default.", field=key, fix=fix)
    invocation = current()
    if invocation.json:
        invocation.emit(document)
    else:
        invocation.write(f"{document['value']}\n")
    return 0


def set_setting(key: str, value: str | None) -> int:
    """Write a value into the file of its kind: secrets into ~/.abx/.env, which only its owner reads.

    Raises:
        Refused: the value does not fit the setting, or the file cannot be changed.
    """
    setting = _BY_KEY[key]
    if setting.secret and value is not None:
        raise Refused(
            "secret",
            "is not taken from the command line, where shells and lists of processes keep it.",
            field="VALUE",
            fix=f"Run `abx config set {key}` and type it, or pipe it in.",
        )
    _write(setting, _checked(setting, _asked(setting) if value is None else value))
    return 0


def unset_setting(key: str) -> int:
    """Remove a value from the files of the home."""
    _write(_BY_KEY[key], None)
    return 0


def show_paths() -> int:
    """Tell the files."""
    home = Surroundings.own().home / ".abx"
    files = {"config": home / "config.toml", "secrets": home / ".env"}
    invocation = current()
    if invocation.json:
        invocation.emit({name: {"path": str(path), "exists": path.exists()} for name, path in files.items()})
    else:
        invocation.write("".join(f"{path}\n" for path in files.values()))
    return 0


def _document(setting: Setting, settings: Settings) -> dict[str, Any]:
    found = settings.found.get(setting.key)
    value = setting.default if found is None else found.value
    return {
        "key": setting.key,
        "value": MASK if setting.secret and value is not None else value,
        "layer": found.layer if found else None if setting.default is None else "default",
        "secret": setting.secret,
        "env": setting.env,
        "description": setting.description,
    }


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _asked(setting: Setting) -> str:
    """The value from a person, whose typing is not shown where it is a secret, or from a pipe."""
    if sys.stdin.isatty():
        return str(click.prompt(setting.key, hide_input=setting.secret, err=True))
    return sys.stdin.read(_LONGEST + 1).rstrip("\r\n")


def _checked(setting: Setting, text: str) -> str | int:
    value = text.strip()
    if not value or len(value) > _LONGEST or not value.isprintable():
        raise Refused("length", f"must be one line of 1 to {_LONGEST} characters.", field="VALUE")
    if setting.choices and value not in setting.choices:
        raise Refused("enum", f"must be one of: {', '.join(setting.choices)}.", field="VALUE")
    if setting.kind != "integer":
        return value
    number = int(value) if value.isascii() and value.removeprefix("-").isdigit() and len(value) < 19 else None
    low, high = setting.minimum, setting.maximum
    if number is None or (low is not None and number < low) or (high is not None and number > high):
        bounds = f" from {low} to {high}" if low is not None and high is not None else ""
        raise Refused("range", f"must be a whole number{bounds}.", field="VALUE")
    return number


def _write(setting: Setting, value: str | int | None) -> None:
    around = Surroundings.own()
    invocation = current()
    in_env = setting.secret or setting.toml is None
    # The line of ~/.abx/.env would win over the new value: it goes.
    line = str(value) if in_env and value is not None else None
    changed = _edit(around.home / ".abx" / ".env", lambda text: with_variable(text, setting.env, line), around)
    if setting.toml is not None and not setting.secret:
        dotted = setting.toml
        changed += _edit(around.home / ".abx" / "config.toml", lambda text: with_value(text, dotted, value), around)
    _tell(setting, value, changed, invocation)


def _tell(setting: Setting, value: str | int | None, changed: list[str], invocation: Invocation) -> None:
    if invocation.json:
        invocation.emit({"key": setting.key, "changed": changed, "set": value is not None})
    elif not changed:
        invocation.write(f"{setting.key}: nothing to change.\n")
    else:
        shown = "removed" if value is None else MASK if setting.secret else str(value)
        invocation.write(f"{setting.key}: {shown} ({', '.join(changed)})\n")
    try:
        layer = load_settings().layer(setting.key)
    except ConfigurationInvalid:
        return
    if layer in ("environment", "./.env"):
        invocation.note(f"note: {setting.env} of {layer} still wins over the file.")


def _edit(path: Path, edit: Callable[[str], str], around: Surroundings) -> list[str]:
    """Change one file, made private where it is new; its name if it changed."""
    shown = around.shown(path)
    try:
        file = config_file.read(path, "user", around.workdir)
        before = (file.data or b"").decode()
        after = edit(before)
        if after == before:
            return []
        config_file.replace(file, after.encode(), private=True)
    except Unusable as error:
        raise Refused(error.rule, error.what, field=shown, fix=error.fix) from error
    except Broken as error:
        fix = "Correct that line."
        raise Refused(
            "broken", f"is not {error.kind}: line {error.line} {error.what}.", field=shown, fix=fix
        ) from error
    except (Unsafe, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, Unsafe) else "is not UTF-8"
        raise Refused("unsafe", f"{what}. It is left as it is.", field=shown, fix="Change it by hand.") from error
    return [shown]
