"""`abx sandbox` and `abx doctor`: shapes of `--json`, exit statuses, what is asked of the platform."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloche_cli import sizes
from cloche_contract.errors import (
    AuthenticationFailed,
    BackendUnavailable,
    ClocheError,
    ConfigurationInvalid,
    PermissionDenied,
    ProviderTimeout,
    ProviderUnavailable,
    QuotaExceeded,
    TemplateNotFound,
)
from cloche_testkit.markers import leaked_markers
from cloche_testkit.plane import ScriptedPlane
from tests.packages.cli.ran import Abx

METADATA = [
    "sandbox_id",
    "template",
    "status",
    "region",
    "started_at",
    "end_at",
    "cpu_count",
    "memory_mb",
    "disk_size_mb",
]


@pytest.fixture(autouse=True)
def scripted(scripted_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch) -> ScriptedPlane:
    monkeypatch.setenv("ABX_PROVIDER", "scripted")
    scripted_plane.marked = True
    return scripted_plane


def test_create_tells_the_id_and_the_sandbox_lives_on(abx: Abx, scripted: ScriptedPlane) -> None:
    assert abx(["sandbox", "create"]).out == "sb0001\n"
    assert scripted.alive == ["sb0001"]
    assert scripted.script.operations() == ["create"]


def test_create_sends_what_was_asked_and_nothing_else(abx: Abx, scripted: ScriptedPlane) -> None:
    """Seed 000, 54 and 58."""
    scripted.limits = ("cpu", "memory")
    words = ["--template", "base", "--timeout", "600", "--cpu", "2", "--memory", "1024"]
    words += ["--region", "north", "--env", "A=1"]
    document = json.loads(abx(["sandbox", "create", *words, "--json"]).out)
    assert sorted(document) == ["sandbox_id", "status", "url"]
    assert scripted.script.of("create") == [
        {"template": "base", "timeout": 600, "cpu": 2, "memory": 1024, "region": "north", "envs": {"A": "1"}}
    ]


def test_the_configured_template_is_used(abx: Abx, scripted: ScriptedPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 001, 160."""
    monkeypatch.setenv("ABX_DEFAULT_TEMPLATE", "code-interpreter-v1")
    abx(["sandbox", "create"])
    assert scripted.script.of("create")[0]["template"] == "code-interpreter-v1"


def test_a_limit_that_cannot_be_held_is_refused(abx: Abx, scripted: ScriptedPlane) -> None:
    """Decision D23."""
    ran = abx(["--json", "sandbox", "create", "--memory", "512"])
    document = json.loads(ran.err)
    assert (ran.status, document["code"], document["details"]) == (1, "unsupported_limit", {"limit": "memory"})
    assert scripted.alive == []


def test_ids_of_another_provider_are_told_as_the_next_command_takes_them(
    abx: Abx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision D19: a plain id belongs to the default provider."""
    monkeypatch.delenv("ABX_PROVIDER")
    sandbox_id = abx(["sandbox", "create", "--provider", "scripted"]).out.strip()
    listed = json.loads(abx(["--json", "sandbox", "list", "--provider", "scripted"]).out)["sandboxes"]
    assert sandbox_id == listed[0]["sandbox_id"] == "scripted:sb0001"
    assert abx(["sandbox", "kill", sandbox_id]).status == 0


def test_list_shows_a_page_of_metadata(abx: Abx, scripted: ScriptedPlane) -> None:
    """Seed 000, 23 and 40."""
    for _ in range(3):
        abx(["sandbox", "create"])
    ran = abx(["sandbox", "list", "--status", "running", "--limit", "2", "--offset", "1", "--json"])
    document = json.loads(ran.out)
    assert [entry["sandbox_id"] for entry in document["sandboxes"]] == ["sb0002", "sb0001"]
    assert all(list(entry) == METADATA for entry in document["sandboxes"])
    assert (document["limit"], document["offset"]) == (2, 1)
    assert scripted.script.of("list") == [{"status": "running", "limit": 2, "offset": 1}]
    assert leaked_markers(ran.out) == []


def test_list_for_a_person_is_a_table(abx: Abx) -> None:
    assert abx(["sandbox", "list"]).out == "No sandbox is alive.\n"
    abx(["sandbox", "create"])
    head, row = abx(["sandbox", "list"]).out.splitlines()
    assert head.split() == ["ID", "TEMPLATE", "STATUS", "STARTED", "ENDS"]
    assert row.split()[:3] == ["sb0001", "base", "running"]


def test_list_tells_ages_as_people_read_them(abx: Abx) -> None:
    abx(["sandbox", "create", "--timeout", "7200"])
    words = abx(["sandbox", "list"]).out.splitlines()[1].split()
    assert (words[5], words[6]) == ("ago", "in")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7300, "2 h"), (200_000, "2 d")]
)
def test_a_span_is_told_in_its_largest_unit(seconds: float, text: str) -> None:
    assert sizes.shown_span(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 27, "128 MiB")]
)
def test_a_size_is_told_with_its_unit(size: int, text: str) -> None:
    assert sizes.shown_size(size) == text


@pytest.mark.parametrize("moment", [None, "", "yesterday", "2026-11-30T10:00:00"])
def test_a_moment_that_is_not_known_is_a_dash(moment: str | None) -> None:
    assert sizes.ago(moment, datetime.now(UTC)) == sizes.ahead(moment, datetime.now(UTC)) == "-"


def test_list_of_all_goes_through_every_page_and_filters_hold_together(abx: Abx, scripted: ScriptedPlane) -> None:
    for number in range(3):
        abx(["sandbox", "create", *(["--region", "north"] if number else [])])
    document = json.loads(abx(["--json", "sandbox", "list", "--all", "--limit", "1"]).out)
    assert [entry["sandbox_id"] for entry in document["sandboxes"]] == ["sb0003", "sb0002", "sb0001"]
    words = ["sandbox", "list", "--filter", "region=north", "--filter", "id=sb0002"]
    assert [line.split()[0] for line in abx(words).out.splitlines()] == ["ID", "sb0002"]
    for wrong in ("region", "region=", "envs=x", "=x"):
        refused = abx(["sandbox", "list", "--filter", wrong])
        assert (refused.status, "id, template, status, region" in refused.err) == (2, True)


def test_kill_all_takes_every_sandbox_and_no_ids(abx: Abx, scripted: ScriptedPlane) -> None:
    assert abx(["sandbox", "kill", "--all"]).out == "No sandbox is alive.\n"
    for _ in range(2):
        abx(["sandbox", "create"])
    assert abx(["sandbox", "kill", "--all", "sb0001"]).status == 2
    assert abx(["sandbox", "kill"]).status == 2
    assert json.loads(abx(["sandbox", "kill", "--all", "--json"]).out) == {
        "success": True,
        "killed": ["sb0002", "sb0001"],
    }
    assert scripted.alive == []


@pytest.mark.parametrize("words", [["sandbox", "diff", "sb0001"], ["sandbox", "logs", "sb0001"], ["prune"]])
def test_what_a_provider_cannot_tell_is_refused(abx: Abx, words: list[str]) -> None:
    """Decision D23."""
    abx(["sandbox", "create"])
    ran = abx(["--json", *words])
    assert (ran.status, json.loads(ran.err)["code"]) == (1, "unsupported_operation")


def test_audit_shows_the_calls_about_a_sandbox(abx: Abx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Issue 3, part 5; ADR 26."""
    path = tmp_path / "audit.jsonl"
    monkeypatch.setenv("ABX_AUDIT_FILE", str(path))
    assert abx(["audit"]).out == "No call is recorded.\n"
    line = {"time": "t", "who": "user:0", "tool": "run_code", "outcome": "ok", "error": None, "ms": 3}
    lines = [{**line, "sandbox": "sb1"}, {**line, "sandbox": "local:sb2"}, {**line, "sandbox": "sb1\x1b[2J"}]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert [row.split()[3] for row in abx(["audit"]).out.splitlines()[1:]] == ["sb1", "local:sb2", "sb1\\x1b[2J"]
    document = json.loads(abx(["--json", "audit", "--sandbox", "sb2", "--limit", "5"]).out)
    assert (document["file"], [each["sandbox"] for each in document["calls"]]) == (str(path), ["local:sb2"])
    monkeypatch.setenv("ABX_AUDIT_FILE", "off")
    assert abx(["audit"]).status == 1


def test_get_shows_nine_facts_and_neither_connects_nor_renews(abx: Abx, scripted: ScriptedPlane) -> None:
    """Seed 000, 32, 37 and 40."""
    abx(["sandbox", "create"])
    ran = abx(["--json", "sandbox", "get", "scripted:sb0001"])
    assert list(json.loads(ran.out)) == METADATA
    assert leaked_markers(ran.out + abx(["sandbox", "get", "sb0001"]).out) == []
    assert scripted.script.operations() == ["create", "get", "get"]


def test_inspect_shows_users_limits_and_mounts(abx: Abx) -> None:
    abx(["sandbox", "create"])
    document = json.loads(abx(["sandbox", "inspect", "sb0001", "--json"]).out)
    assert {"sandbox_id", "mounts", "limits", "users", "namespaces", "network"} <= set(document)
    text = abx(["sandbox", "inspect", "sb0001"]).out
    assert "users          host" in text
    assert "memory    -      nothing" in text


def test_kill_ends_each_and_tells_the_first_failure(abx: Abx, scripted: ScriptedPlane) -> None:
    for _ in range(2):
        abx(["sandbox", "create"])
    ran = abx(["sandbox", "kill", "sb0001", "unknown", "scripted:sb0002"])
    assert (ran.status, ran.out) == (4, "killed sb0001\nkilled scripted:sb0002\n")
    assert "abx sandbox list" in ran.err
    assert scripted.alive == []


def test_kill_as_json(abx: Abx) -> None:
    abx(["sandbox", "create"])
    ran = abx(["--json", "sandbox", "kill", "sb0001", "sb0001"])
    assert json.loads(ran.out) == {"success": False, "killed": ["sb0001"]}
    assert json.loads(ran.err)["code"] == "sandbox_not_found"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProviderUnavailable(), 1),
        (PermissionDenied(http_status=403), 1),
        (BackendUnavailable(cause="user_namespaces_disabled"), 1),
        (ConfigurationInvalid(setting="ABX_HTTP_TIMEOUT"), 2),
        (AuthenticationFailed(http_status=401), 3),
        (TemplateNotFound(), 4),
        (ProviderTimeout(), 5),
        (QuotaExceeded(), 6),
        (RuntimeError("a text with s3cr3t in it"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_category_has_its_exit_status(abx: Abx, scripted: ScriptedPlane, error: Exception, status: int) -> None:
    """Issue "The spine", item 8; systems facts 4."""
    scripted.script.fail_next("create", error, times=2)
    ran = abx(["--json", "sandbox", "create"])
    document = json.loads(ran.err)
    assert ran.status == status
    assert document["code"] == (error.code if isinstance(error, ClocheError) else "internal_error")
    person = abx(["sandbox", "create"])
    cause, fix = person.err.splitlines()
    assert cause.startswith("error: ")
    assert fix.startswith("fix: ")
    assert "s3cr3t" not in ran.err + person.err


def test_a_backend_that_is_missing_tells_cause_and_fix(abx: Abx, scripted: ScriptedPlane) -> None:
    """Fault E16."""
    scripted.script.fail_next("create", BackendUnavailable(cause="user_namespaces_disabled"))
    ran = abx(["sandbox", "create"])
    assert "User namespaces are switched off." in ran.err
    assert "user.max_user_namespaces" in ran.err


def test_a_provider_that_is_not_installed_is_configuration(abx: Abx) -> None:
    ran = abx(["sandbox", "get", "nowhere:sb0001"])
    assert ran.status == 2
    assert "scripted" in ran.err


def test_a_broken_configuration_file_is_configuration(abx: Abx, tmp_path: Path) -> None:
    folder = tmp_path / ".abx"
    folder.mkdir()
    (folder / "config.toml").write_text("provider = = =")
    assert abx(["sandbox", "list"]).status == 2


def test_a_setting_that_is_wrong_is_named(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABX_LOG_LEVEL", "s3cr3t")
    ran = abx(["--json", "sandbox", "list"])
    document = json.loads(ran.err)
    assert (ran.status, document["code"], document["details"]) == (
        2,
        "configuration_invalid",
        {"setting": "ABX_LOG_LEVEL"},
    )
    assert "s3cr3t" not in ran.err


def test_doctor_tells_what_was_tried(abx: Abx) -> None:
    ran = abx(["doctor"])
    assert ran.status == 0
    assert "isolation" in ran.out
    assert "fix: Use the provider local" in ran.out
    document = json.loads(abx(["--json", "doctor"]).out)
    assert {"provider", "usable", "checks", "capabilities", "limits"} <= set(document)


def test_doctor_of_a_machine_that_cannot_is_status_1(abx: Abx, scripted: ScriptedPlane) -> None:
    scripted.usable = False
    ran = abx(["doctor"])
    assert (ran.status, ran.out.splitlines()[0]) == (1, "The provider scripted cannot make sandboxes.")
