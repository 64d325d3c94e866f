"""Where a client's file is on this machine."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cloche_cli.clients.table import Client, Scope

_VARIABLE = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")


@dataclass(frozen=True)
class Surroundings:
    """What decides where files are."""

    environ: Mapping[str, str]
    home: Path
    workdir: Path
    platform: str

    @staticmethod
    def own() -> "Surroundings":
        """Those of this process."""
        home = os.environ.get("HOME") or os.path.expanduser("~")
        platform = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
        return Surroundings(os.environ, Path(home), Path.cwd(), platform)

    def shown(self, path: Path) -> str:
        """A path as a person writes it: from the project or from the home, where it is below one."""
        bases = {self.home: "~/"} if self.workdir == self.home else {self.home: "~/", self.workdir: ""}
        for base in sorted(bases, key=lambda base: len(base.parts), reverse=True):
            if path.is_relative_to(base):
                return bases[base] + path.relative_to(base).as_posix()
        return str(path)


def config_path(client: Client, scope: Scope, around: Surroundings) -> Path:
    """The client's file: of several the first that exists, else the first."""
    written = client.files[scope]
    here = cast("dict[str, str]", written)[around.platform] if isinstance(written, dict) else written
    names = cast("list[str]", [here] if isinstance(here, str) else here)
    candidates = [_expanded(name, around) for name in names]
    return next((path for path in candidates if path.exists()), candidates[0])


def _expanded(written: str, around: Surroundings) -> Path:
    # A variable that is blank counts as not set, as for our own settings.
    text = _VARIABLE.sub(lambda found: around.environ.get(found[1], "").strip() or found[2], written)
    if text == "~" or text.startswith("~/"):
        return around.home / text[2:]
    return around.workdir / text
