"""Wrong words on the command line: status 2, one line of cause, one of what to do, never the words."""

import json

import pytest

from tests.packages.cli.ran import Abx

SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    ("words", "field", "rule"),
    [
        (["run"], "CODE|FILE|-", "required"),
        (["run", "--timeout", SECRET, "1"], "--timeout", "range"),
        (["run", "--timeout", "0", "1"], "--timeout", "range"),
        (["run", "--timeout", "3601", "1"], "--timeout", "range"),
        (["run", "--timeout", "1.5", "1"], "--timeout", "range"),
        (["run", "--language", SECRET, "1"], "--language", "enum"),
        (["run", "--template", " ", "1"], "--template", "length"),
        (["run", "1", SECRET], None, "too_many_arguments"),
        (["run", ""], "CODE|FILE|-", "minLength"),
        (["run", f"{SECRET}.py"], "CODE|FILE|-", "not_found"),
        (["run", "x" * (1024 * 1024 + 1)], "CODE|FILE|-", "maxLength"),
        (["exec"], "[--] COMMAND...", "required"),
        (["exec", "--env", f"1{SECRET}=2", "true"], "--env", "pattern"),
        (["exec", "--env", "NOT_SET_ANYWHERE", "true"], "--env", "unset"),
        (["exec", "--timeout", "0", "true"], "--timeout", "range"),
        (["sandbox", "create", "--timeout", "86401"], "--timeout", "range"),
        (["sandbox", "create", "--cpu", "0"], "--cpu", "range"),
        (["sandbox", "create", "--memory", "-5"], "--memory", "range"),
        (["sandbox", "create", "--memory", SECRET], "--memory", "range"),
        (["sandbox", "list", "--limit", "101"], "--limit", "range"),
        (["sandbox", "list", "--status", SECRET], "--status", "enum"),
        (["sandbox", "get"], "ID", "required"),
        (["sandbox", "get", ""], "ID", "length"),
        (["sandbox", "kill"], "ID...", "required"),
        (["sandbox", SECRET], "COMMAND", "unknown_command"),
        (["sandbox", "list", f"--{SECRET}"], f"--{SECRET}", "unknown_option"),
        (["sandbox", "list", f"--api-key={SECRET}"], "--api-key", "unknown_option"),
        (["mcp", "start", SECRET], None, "too_many_arguments"),
        ([SECRET], "COMMAND", "unknown_command"),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value),
)
def test_a_refusal_names_the_field_and_the_rule(abx: Abx, words: list[str], field: str | None, rule: str) -> None:
    """Decision D12, seed 000, 95 and 96."""
    ran = abx(["--json", *words])
    assert (ran.status, ran.out) == (4 if rule == "not_found" else 2, "")
    document = json.loads(ran.err)
    assert document["details"] == {"field": field, "rule": rule}
    assert document["suggestion"]
    if field != f"--{SECRET}":
        assert SECRET not in ran.err


def test_a_person_gets_one_line_of_cause_and_one_of_what_to_do(abx: Abx) -> None:
    ran = abx(["sandbox", "list", "--limit", "1000"])
    assert ran.err == (
        "error: --limit must be a whole number from 1 to 100.\n"
        "fix: Run `abx sandbox list --help` to see what it takes.\n"
    )


def test_json_may_stand_before_or_after_the_command(abx: Abx) -> None:
    for words in (["--json", "sandbox", "list", "--limit", "0"], ["sandbox", "list", "--limit", "0", "--json"]):
        assert json.loads(abx(words).err)["code"] == "invalid_argument"


def test_the_version_is_printed(abx: Abx) -> None:
    assert abx(["--version"]).out == "abx 0.1.0\n"
    assert json.loads(abx(["--json", "--version"]).out) == json.loads(abx(["--version", "--json"]).out)


def test_without_words_the_help_is_shown(abx: Abx) -> None:
    ran = abx([])
    assert "abx run" in ran.out + ran.err
    assert ran.status == 2
