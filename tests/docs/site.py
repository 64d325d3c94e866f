"""The documentation site: built from the pages of one tree into a folder outside of what is tracked.

`nox -s docs` runs this module, with another folder as its argument where it shall lie elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / ".cache" / "docs"
_STRICT = ("--fail-on-warning", "--nitpicky", "--quiet")


def build(target: Path, repository: Path = ROOT, *, again: bool = False, **environ: str) -> Path:
    """Build the site below `target` and return the folder of its pages.

    Args:
        again: only what is not as at the time of the last build there.
        environ: variables of the build, instead of those of this process.

    Raises:
        CalledProcessError: Sphinx found something wrong; it has said what, on stderr.
    """
    pages = target / "html"
    command = [sys.executable, "-m", "sphinx", "--builder", "html", *_STRICT, *(() if again else ("--fresh-env",))]
    subprocess.run(
        [*command, "--doctree-dir", str(target / "doctrees"), str(repository / "docs"), str(pages)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environ},
        check=True,
    )
    return pages


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else SITE
    try:
        sys.stdout.write(f"The site is in {build(folder)}.\n")
    except subprocess.CalledProcessError:
        raise SystemExit("The site was not built.") from None
