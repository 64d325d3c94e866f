"""What may not be in a tracked file."""

from __future__ import annotations

import re

from tests.architecture.workspace import ROOT, hand_written, short, tracked_files

# Written with classes so that this file does not contain what it looks for.
MACHINE = re.compile(r"/(wor[k]|roo[t]|opt/pyp[i])/|\.pyen[v]|bash_job[s]")
REGISTRY = re.compile(r"registry\.npm[j]s|pyp[i]\.org|pythonhoste[d]|deb\.debia[n]\.org|extra-inde[x]-url")
UNFINISHED = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b|NotImplemented[E]rror")
# A path that is a case of the test that holds it, not a place on the machine that wrote it.
HARMLESS_PATHS = {"tests/packages/local/escape"}


def offences(pattern: re.Pattern[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found[f"{short(path)}:{number}"] = line.strip()[:120]
    return found


def test_no_tracked_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    found = {
        place: line
        for place, line in offences(MACHINE).items()
        if not any(place.startswith(prefix) for prefix in HARMLESS_PATHS)
    }
    assert found == {}


def test_no_tracked_file_names_the_host_of_a_registry() -> None:
    """Architecture 3.3: no lock files that record index hosts."""
    assert offences(REGISTRY) == {}


def test_nothing_is_left_unfinished() -> None:
    """Style S15."""
    assert offences(UNFINISHED) == {}


def test_top_level_folders_are_the_five_of_the_plan() -> None:
    """Architecture 3.2: only dotfiles and the usual project files join them."""
    folders = {path.relative_to(ROOT).parts[0] for path in tracked_files() if len(path.relative_to(ROOT).parts) > 1}
    visible = {name for name in folders if not name.startswith(".")}
    assert visible == {"schemas", "codegen", "packages", "tests", "docs"}


def test_every_hand_written_module_says_what_it_is_for() -> None:
    """Style S4. An empty __init__.py has nothing to say."""
    silent = {
        short(path)
        for path in hand_written()
        if (text := path.read_text(encoding="utf-8").strip()) and not text.startswith(('"""', "#!", 'r"""'))
    }
    assert silent == set()
