"""Values of this process that must not reach a model, also where a program in a sandbox learned and prints them.

Source: systems facts 1.3: the API key, and variables that are named like secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cloche_contract.settings import SETTINGS

from .config import Settings

__all__ = ["hidden_values"]

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
SHORTEST = 8
LONGEST = 32_768


def hidden_values(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The secret settings, and the values of variables that are named like secrets.

    Short values are left alone: replacing them would garble output that has nothing to do with them.
    """
    named = [value for name, value in environ.items() if _SECRET_NAME.search(name)]
    configured = [settings.text(setting.key) or "" for setting in SETTINGS if setting.secret]
    return tuple(sorted({value for value in (*named, *configured) if SHORTEST <= len(value) <= LONGEST}))
