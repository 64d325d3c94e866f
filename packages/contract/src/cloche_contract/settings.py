"""Every setting that something reads: its variable, its key in config.toml, its type, its default, whether it is secret."""

from cloche_contract._gen.settings import LAYERS, SETTINGS
from cloche_contract.kernel.setting import Setting, SettingKind

__all__ = ["LAYERS", "SETTINGS", "Setting", "SettingKind"]
