"""The manifest of requirements and the tests agree, in both directions."""

from __future__ import annotations

from pathlib import Path

from tests.requirements import FAULTS, NOT_SHOWN, SEED_LINES, cases, faults_of, shown_by


def test_every_fault_row_is_shown_by_a_test() -> None:
    """A row of the manifest that no test names is a promise nobody keeps."""
    shown = shown_by()
    assert sorted(row for row in FAULTS if row not in shown) == []


def test_no_test_names_an_unknown_fault_row() -> None:
    """A name that looks like a row but is none hides that the row is missing."""
    assert {row: found for row, found in shown_by().items() if row not in FAULTS} == {}


def test_every_sentence_of_the_seeds_is_shown_by_tests_that_exist() -> None:
    """The other direction: a renamed test must take its sentence along."""
    names = {case.name for case in cases()}
    lost = {line: missing for line, entry in SEED_LINES.items() if (missing := set(entry.tests) - names)}
    assert lost == {}
    assert [line for line, entry in SEED_LINES.items() if not entry.tests or not entry.sentence.endswith(".")] == []


def test_no_sentence_about_the_sandbox_tools_is_left_out() -> None:
    """Issue 4: lines 1 to 150 and 295 to 328 are shown, or say why no test can show them; never both."""
    assert set(SEED_LINES).isdisjoint(NOT_SHOWN)
    listed = {int(line.rpartition("-")[2]) for line in (*SEED_LINES, *NOT_SHOWN)}
    assert [number for number in (*range(1, 151), *range(295, 329)) if number not in listed] == []
    assert [line for line, entry in NOT_SHOWN.items() if entry.tests or not entry.not_shown_because] == []


def test_no_sentence_about_the_management_tools_is_left_out() -> None:
    """Issue 7: lines 213 to 294 and 329 to 350 are shown, or say why no test can show them."""
    listed = {int(line.rpartition("-")[2]) for line in (*SEED_LINES, *NOT_SHOWN)}
    assert [number for number in (*range(213, 295), *range(329, 351)) if number not in listed] == []


def test_every_test_says_what_it_shows() -> None:
    """Style S14: the name states an outcome; one word is not an outcome."""
    assert sorted(case.name for case in cases() if case.name.count("_") < 2) == []


def test_the_fault_row_of_a_test_is_read_from_its_name() -> None:
    assert faults_of("test_t1_sleep_past_its_timeout_leaves_no_process") == ["T1"]
    assert faults_of("test_m8_m9_input_schemas_are_plain") == ["M8", "M9"]
    assert faults_of("test_e20_memory_limit_has_its_own_reason") == ["E20"]
    assert faults_of("test_the_kernel_is_small") == []


def test_tests_are_found_inside_classes_and_as_coroutines_too(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "async def test_t1_a_b(): ...\nclass TestX:\n    def test_t3_c_d(self): ...\n"
    )
    assert sorted(shown_by(tmp_path)) == ["T1", "T3"]
