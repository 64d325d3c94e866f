"""The site in a real browser: no error, no lost link, no page that is wider than a phone, and a search that finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.docs.site import ROOT
from tests.inspector import MODULES, has_driver, node

PROGRAM = Path(__file__).with_name("browser.mjs")
# Where the pictures lie afterwards, for people to look at.
PICTURES = ROOT / ".cache" / "docs" / "pictures"
_CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Links(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and not urlsplit(value).scheme:
                self.targets.append(unquote(value))


def test_every_link_of_the_site_leads_to_a_page_and_to_a_place_in_it(site: Path) -> None:
    """Issue 6: broken anchors fail."""
    read = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    lost: list[str] = []
    for path, links in read.items():
        for target in links.targets:
            file, anchor = urldefrag(target)
            found = (path.parent / urlsplit(file).path).resolve() if file else path
            if not found.is_file() or (anchor and found in read and anchor not in read[found].anchors):
                lost.append(f"{path.relative_to(site)}: {target}")
    assert lost == []
    assert len(read) > 60


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The site on a port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def chromium() -> str:
    """The browser of this machine. Skips the test where there is none, or nothing to drive it."""
    found = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if found is None:
        pytest.skip("no Chromium is installed: apt-get install chromium-headless-shell")
    if node() is None or not has_driver():
        pytest.skip("playwright-core is not installed: run python -m tests.inspector")
    return found


def test_the_site_shows_no_error_on_a_screen_in_the_dark_and_on_a_phone(
    site: Path, address: str, tmp_path: Path
) -> None:
    """Issue 6: looked at in Chromium, light, dark and phone; console errors and an empty search fail."""
    pages = [path.relative_to(site).with_suffix("").as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if page not in ("search", "genindex")]
    done = subprocess.run(
        [str(node()), str(PROGRAM), str(MODULES), chromium(), address, str(tmp_path), *pages],
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    for picture in tmp_path.glob("*.png"):
        shutil.copy(picture, PICTURES)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == []
    assert len(list(PICTURES.iterdir())) == 33
