"""Settings in layers, over the generated table of settings.

argument > environment > ./.env > ~/.abx/.env > ~/.abx/config.toml > default. A blank
value counts as not set. A secret is never read from config.toml, which people commit; what
widens the rights of sandboxes is never read from ./.env, which comes with a workspace.

Source: systems facts 2.6; schemas/config/settings.json.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, cast

from cloche_contract.errors import ConfigurationInvalid
from cloche_contract.settings import SETTINGS, Setting

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FoundSetting", "Settings", "load_settings"]

Layers: TypeAlias = "Sequence[tuple[str, Mapping[str, str]]]"
Toml: TypeAlias = "Mapping[str, object]"

FILE_LIMIT = 1_048_576
_WORKSPACE_LAYER = "./.env"
# What may be set for one provider alone: ABX_<PROVIDER>_<KEY>, [providers.<id>].
PER_PROVIDER = ("region", "sandbox_api_key", "sandbox_base_url", "sandbox_domain", "sandbox_url")
_SCOPED = re.compile(rf"ABX_([A-Z][A-Z0-9_]*)_({'|'.join(name.upper() for name in PER_PROVIDER)})")
_BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True)
class FoundSetting:
    """A value and the layer that it comes from; `repr` never shows a value."""

    value: str = field(repr=False)
    layer: str


@dataclass(frozen=True)
class Settings:
    """Resolved settings of this process. Values are text; accessors check and convert them."""

    found: Mapping[str, FoundSetting]

    def text(self, name: str) -> str | None:
        """The value of a setting, or None where no layer and no default gives one.

        Raises:
            ConfigurationInvalid: the value is not one of the setting's choices.
        """
        setting = _BY_KEY[name]
        found = self.found.get(name)
        if found is None:
            return None if setting.default is None else str(setting.default)
        if setting.choices and found.value not in setting.choices:
            raise ConfigurationInvalid(setting=setting.env)
        return found.value

    def integer(self, name: str) -> int:
        """The value of a whole-number setting.

        Raises:
            ConfigurationInvalid: it is not a whole number, or out of range.
        """
        setting = _BY_KEY[name]
        text = self.text(name)
        try:
            value = int(text or "")
        except ValueError:
            raise ConfigurationInvalid(setting=setting.env) from None
        low, high = setting.minimum, setting.maximum
        if (low is not None and value < low) or (high is not None and value > high):
            raise ConfigurationInvalid(setting=setting.env)
        return value

    def layer(self, name: str) -> str:
        """Which layer gives the value."""
        found = self.found.get(name)
        return "default" if found is None else found.layer

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Everything that is set, defaults included, as providers get it."""
        named = {name: self.text(name) for name in _BY_KEY}
        extra = {name: found.value for name, found in self.found.items() if name not in _BY_KEY}
        return {**{name: value for name, value in named.items() if value is not None}, **extra}

    def for_provider(self, provider: str, *, general: bool) -> Mapping[str, str]:
        """`values` as one provider gets them: an argument of the call wins, then what is scoped to the provider.

        A key and the addresses that it is sent to belong together: the general ones go to no provider but `cloud`
        and the default one. What is scoped is `ABX_<PROVIDER>_<KEY>`, or below `[providers.<id>]`.

        Args:
            general: whether this provider gets the general key and addresses.
        """
        found = dict(self.values)
        for name in PER_PROVIDER:
            if not general and self.layer(name) != "argument":
                found.pop(name, None)
            scoped = self.scoped(provider, name)
            if scoped is not None and self.layer(name) != "argument":
                found[name] = scoped.value
        return found

    def scoped(self, provider: str, name: str) -> FoundSetting | None:
        """The value that a setting has for one provider alone."""
        return self.found.get(f"{provider}.{name}")

    def override(self, **arguments: str | None) -> Settings:
        """The same settings with arguments on top of every layer; None and blank change nothing."""
        given = {name: FoundSetting(value, "argument") for name, value in arguments.items() if value and value.strip()}
        return Settings({**self.found, **given}) if given else self


def load_settings(
    environ: Mapping[str, str] | None = None, *, home: Path | None = None, workdir: Path | None = None
) -> Settings:
    """Read every layer once.

    Args:
        environ: the environment; the process's own when left out.
        home: where `.abx` lies; `HOME` when left out.
        workdir: where `./.env` lies; the current directory when left out.

    Raises:
        ConfigurationInvalid: config.toml is not TOML.
    """
    environ = os.environ if environ is None else environ
    base = home or Path(environ.get("HOME") or os.path.expanduser("~"))
    layers: Layers = (
        ("environment", environ),
        (_WORKSPACE_LAYER, _read_env_file((workdir or Path()) / ".env")),
        ("~/.abx/.env", _read_env_file(base / ".abx" / ".env")),
    )
    toml = _read_toml(base / ".abx" / "config.toml")
    found: dict[str, FoundSetting] = {}
    for name, setting in _BY_KEY.items():
        value = _in_layers(setting, setting.env, setting.toml, layers, toml)
        if value is not None:
            found[name] = value
    for provider in _named_providers(layers, toml):
        prefix = f"ABX_{provider.upper().replace('-', '_')}_"
        for name in PER_PROVIDER:
            setting = _BY_KEY[name]
            value = _in_layers(setting, f"{prefix}{name.upper()}", f"providers.{provider}.{name}", layers, toml)
            if value is not None:
                found[f"{provider}.{name}"] = value
    return Settings(found)


def _in_layers(setting: Setting, env: str, dotted: str | None, layers: Layers, toml: Toml) -> FoundSetting | None:
    """The value of the first layer that has one, by the names that it goes under there."""
    for layer, values in layers:
        value = values.get(env, "").strip()
        if value and (setting.workspace or layer != _WORKSPACE_LAYER):
            return FoundSetting(value, layer)
    value = "" if setting.secret or dotted is None else _look_up(toml, dotted).strip()
    return FoundSetting(value, "~/.abx/config.toml") if value else None


def _named_providers(layers: Layers, toml: Toml) -> set[str]:
    """The providers that have settings of their own."""
    names = {name for _, values in layers for name in values}
    matches = (_SCOPED.fullmatch(name) for name in names)
    scoped = {match[1].lower().replace("_", "-") for match in matches if match}
    sections = toml.get("providers")
    return scoped | (set(cast("Mapping[str, object]", sections)) if isinstance(sections, dict) else set())


def _read_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_LIMIT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _read_env_file(path: Path) -> Mapping[str, str]:
    """`NAME=value` lines; `export`, comments and one pair of quotes are understood, nothing is expanded."""
    values: dict[str, str] = {}
    for line in _read_file(path).splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name or name.startswith("#"):
            continue
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        values[name] = value
    return values


def _read_toml(path: Path) -> Mapping[str, object]:
    text = _read_file(path)
    if not text:
        return {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise ConfigurationInvalid(setting="config.toml") from None


def _look_up(document: Mapping[str, object], dotted: str) -> str:
    value: object = document
    for part in dotted.split("."):
        if not isinstance(value, dict):
            return ""
        value = cast("Mapping[str, object]", value).get(part)
    # A bool is an int in Python, and no setting is a flag: take text and numbers only.
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
