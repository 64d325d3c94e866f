"""Where an export may go: never over what the user or the manager cannot lose. Blocks.

Source: checklist 282 to 286, 347; fault P13.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cloche_contract.errors import DestinationNotAllowed, DestinationUnusable

from .settings import ManagerSettings


def allowed_destination(dest: str, *, archive: bool, settings: ManagerSettings, environ: Mapping[str, str]) -> Path:
    """The real place of a destination, whatever links lead there.

    Raises:
        DestinationNotAllowed: it is the root, a home, what the manager keeps, or a folder above one of them.
        DestinationUnusable: the folder that it is to be in is not there, or it is of another kind.
    """
    asked = Path(dest)
    try:
        # An archive takes the place of a link, so the link is not followed; a folder is where the link leads.
        real = asked.parent.resolve(strict=True) / asked.name if archive else asked.resolve()
        parent_there = real.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as exc:
        raise DestinationUnusable from exc
    if (
        asked.name in ("", "..")
        or _forbidden(real, settings, environ)
        or _forbidden(asked.resolve(), settings, environ)
    ):
        raise DestinationNotAllowed
    if not parent_there or (real.is_dir() if archive else real.exists() and not real.is_dir()):
        raise DestinationUnusable
    return real


def _forbidden(real: Path, settings: ManagerSettings, environ: Mapping[str, str]) -> bool:
    home = Path(environ.get("HOME") or os.path.expanduser("~")).resolve()
    kept = [settings.state_dir.resolve(), settings.cache_dir.resolve()]
    if real == Path("/") or home.is_relative_to(real):
        return True
    return any(one.is_relative_to(real) or real.is_relative_to(one) for one in kept)
