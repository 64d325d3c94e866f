"""Every setting that something reads: variable, key in config.toml, type, default, and whether it is secret."""

from cloche_contract._gen.settings import LAYERS, SETTINGS
from cloche_contract.kernel.setting import Setting, SettingKind

__all__ = ["LAYERS", "SETTINGS", "Setting", "SettingKind"]
