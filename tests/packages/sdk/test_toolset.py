"""The shapes of the sandbox tools' results: seeds 000 and 001, decisions D3, D7, D12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from cloche_contract.errors import ProviderFailed, ProviderUnavailable
from cloche_contract.kernel.toolset import ToolSetOptions
from cloche_sdk import Doors
from cloche_sdk.process_reader import ProcessReader
from cloche_sdk.toolset import open_toolset
from cloche_testkit.markers import MARKERS
from cloche_testkit.plane import ScriptedPlane
from tests.packages.sdk.tools import Tools, open_tools

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


async def test_create_returns_three_keys_and_uses_the_template_of_the_server(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """Seed 001, rules 111, 114, 141; seed 000, rule 54."""
    async with open_tools(doors, template="code-interpreter-v1") as tools:
        made = await tools.call("create_sandbox")
        assert made == {"sandbox_id": "sb0001", "status": "running", "url": "scripted:sb0001"}
        assert scripted_plane.script.of("create") == [{"template": "code-interpreter-v1", "timeout": 300}]
        scripted_plane.limits = ("cpu", "memory")
        await tools.call("create_sandbox", template="base", timeout=600, cpu=2, memory=1024, envs={"A": "b"})
        assert scripted_plane.script.of("create")[1] == {
            "template": "base",
            "timeout": 600,
            "cpu": 2,
            "memory": 1024,
            "envs": {"A": "b"},
        }


async def test_a_limit_that_cannot_be_enforced_is_refused(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D23, and seed 000, rule 55."""
    async with open_tools(doors) as tools:
        failure = await tools.refused("create_sandbox", cpu=2)
    assert (failure["code"], failure["details"]) == ("unsupported_limit", {"limit": "cpu"})


async def test_metadata_is_nine_keys_and_nothing_confidential(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 40 to 48."""
    scripted_plane.marked = True
    async with open_tools(doors) as tools:
        await tools.call("create_sandbox")
        shown = [await tools.call("get_sandbox"), await tools.call("list_sandboxes")]
        assert list(shown[0]) == METADATA
        assert [list(entry) for entry in shown[1]["sandboxes"]] == [METADATA]
        assert (shown[1]["limit"], shown[1]["offset"]) == (100, 0)
    assert not [marker for marker in MARKERS.values() if marker in json.dumps(shown)]


async def test_times_are_iso_and_missing_resources_are_null(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rules 41, 42."""
    async with open_tools(doors) as tools:
        await tools.call("create_sandbox")
        info = await tools.call("get_sandbox", sandbox_id="scripted:sb0001")
    assert info["end_at"] == "2026-01-01T00:05:00+00:00"
    assert (info["cpu_count"], info["memory_mb"], info["disk_size_mb"]) == (None, None, None)


async def test_a_timeout_returns_exactly_three_keys(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 000, rule 77."""
    async with open_tools(doors) as tools:
        await tools.call("create_sandbox")
        answer = await tools.call("set_sandbox_timeout", timeout=600)
    assert answer == {"success": True, "sandbox_id": "sb0001", "timeout": 600}


async def test_kill_names_what_it_destroyed(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """Seed 001, rule 130."""
    async with open_tools(doors) as tools:
        await tools.call("create_sandbox")
        assert await tools.call("kill_sandbox") == {"success": True, "sandbox_id": "sb0001"}
        assert (await tools.refused("kill_sandbox"))["code"] == "no_default_sandbox"


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("create_sandbox", {"cpu": True}, "cpu"),
        ("create_sandbox", {"memory": 1.5}, "memory"),
        ("create_sandbox", {"team": "a"}, "team"),
        ("create_sandbox", {"envs": {"A": 1}}, "envs"),
        ("set_sandbox_timeout", {"timeout": 86_401}, "timeout"),
        ("set_sandbox_timeout", {"timeout": "600"}, "timeout"),
        ("list_sandboxes", {"limit": 101}, "limit"),
        ("list_sandboxes", {"offset": -1}, "offset"),
        ("get_sandbox", {"sandbox_id": ""}, "sandbox_id"),
        ("get_sandbox", {"sandbox_id": None}, "sandbox_id"),
        ("run_code", {"code": "1", "timeout": 0}, "timeout"),
        ("run_command", {"command": ""}, "command"),
        ("write_file", {"path": "/x", "content": "x", "mode": "999"}, "mode"),
    ],
)
async def test_a_wrong_argument_never_reaches_the_platform(
    doors: Doors, scripted_plane: ScriptedPlane, tool: str, arguments: dict[str, Any], field: str
) -> None:
    """Seed 000, rules 78 to 85, 95, 96."""
    async with open_tools(doors) as tools:
        failure = await tools.refused(tool, **arguments)
    assert failure["code"] == "invalid_argument"
    assert failure["details"]["field"].partition(".")[0] == field
    assert scripted_plane.script.operations() == []


async def test_a_failure_of_the_provider_shows_its_static_text_only(
    doors: Doors, scripted_plane: ScriptedPlane, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 000, rules 86 to 94."""
    async with open_tools(doors) as tools:
        error = ProviderFailed(http_status=503)
        error.__cause__ = RuntimeError("https://secret.example/sandboxes said: value-of-a-customer")
        scripted_plane.script.fail_next("list", error)
        failure = await tools.refused("list_sandboxes")
    assert failure["http_status"] == 503
    assert failure["category"] == "unreachable"
    assert "secret.example" not in json.dumps(failure) + caplog.text


async def test_an_id_without_its_provider_is_shown_where_it_is_the_servers(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """D19: what a result names can be passed back."""
    other = Doors(
        settings=doors.settings.override(provider="home"),
        environ={},
        clock=doors.clock,
        providers=lambda: frozenset({"home", "scripted"}),
    )
    async with open_tools(other) as tools:
        made = await tools.call("create_sandbox", provider="scripted")
        assert made["sandbox_id"] == "scripted:sb0001"
        assert (await tools.call("get_sandbox", sandbox_id=made["sandbox_id"]))["sandbox_id"] == "scripted:sb0001"
        assert (await tools.call("get_sandbox", sandbox_id="sb0001"))["sandbox_id"] == "scripted:sb0001"
        listed = await tools.call("list_sandboxes", provider="scripted")
        assert [entry["sandbox_id"] for entry in listed["sandboxes"]] == ["scripted:sb0001"]
        assert (await tools.refused("create_sandbox", provider="cloud"))["code"] == "provider_unknown"


async def test_a_lost_default_is_told_once(doors: Doors, scripted_plane: ScriptedPlane) -> None:
    """D18."""
    async with open_tools(doors) as tools:
        await tools.call("create_sandbox")
        await scripted_plane.expire("sb0001")
        assert (await tools.refused("get_sandbox"))["code"] == "default_sandbox_lost"
        assert (await tools.refused("get_sandbox"))["code"] == "no_default_sandbox"


async def test_a_sandbox_that_dies_under_a_command_is_data_and_then_replaced(
    tools: Tools, unsandboxed_plane: ScriptedPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D5: the partial output, `sandbox_lost`, no invented exit code; the next call has a fresh sandbox."""
    await tools.call("run_command", command="true")
    [first] = unsandboxed_plane.alive
    printed = anyio.Event()
    results: list[dict[str, Any]] = []

    class Watched(ProcessReader):
        """Tells when output has arrived here: what a file inside tells may be ahead of it."""

        def take(self, message: Mapping[str, Any]) -> None:
            super().take(message)
            if self.offset:
                printed.set()

    async def run() -> None:
        results.append(await tools.call("run_command", command="echo so far; sleep 100"))

    monkeypatch.setattr("cloche_sdk.commands.ProcessReader", Watched)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await printed.wait()
            await unsandboxed_plane.expire(first)
    [result] = results
    assert (result["stop_reason"], result["exit_code"], result["stdout"]) == ("sandbox_lost", -1, "so far\n")
    assert (await tools.call("run_command", command="echo fresh"))["stdout"] == "fresh\n"
    assert first not in unsandboxed_plane.alive


async def test_images_are_attached_and_listed_without_their_bytes(tools: Tools) -> None:
    """D7: at most four, of 1 MiB; the rest is named with its size."""
    code = (
        "import base64\n"
        "class Image:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def _repr_png_(self): return b'\\x89PNG' + b'x' * self.size\n"
        "for size in (1, 2, 2_000_000, 3, 4, 5): display(Image(size))\n"
    )
    result = await tools.call("run_code", code=code)
    png = [(item["size"], item["attached"]) for item in result["results"] if item["type"] == "png"]
    assert png == [(5, True), (6, True), (7, True)]
    assert [len(data) for _, data in tools.last_call.images] == [5, 6, 7]
    # What is too large, or one too many, is a file: nothing is lost, and nothing comes unseen.
    assert [file["size"] for file in result["output_files"]] == [2_000_004, 8, 9]
    assert "iVBOR" not in json.dumps(result)


async def test_run_code_shows_value_error_and_files(tools: Tools) -> None:
    """Seed 001, rule 118, and the rich results of the interpreter."""
    value = await tools.call("run_code", code="open('made.txt', 'w').write('x' * 7)\n6 * 7")
    assert value["results"] == [{"type": "text", "size": 2, "text": "42"}]
    assert [(file["name"], file["size"]) for file in value["output_files"]] == [("made.txt", 7)]
    failed = await tools.call("run_code", code="1 / 0")
    assert failed["exit_code"] == 1
    assert failed["error"]["name"] == "ZeroDivisionError"
    assert "ZeroDivisionError" in failed["error"]["traceback"]


async def test_a_language_that_is_missing_lists_those_that_are_there(tools: Tools) -> None:
    """Typed `unsupported_language`."""
    answer = await tools.refused("run_code", code="1", language="r")
    assert answer["code"] == "unsupported_language"
    assert "python" in answer["details"]["available"]


async def test_a_long_listing_is_cut_and_counted(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> None:
    """D9: 1,000 entries, and how many there are."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(1_005):
        (folder / f"{number:04d}").touch()
    listed = await tools.call("list_files", path=str(folder))
    assert (len(listed["files"]), listed["total"], listed["truncated"]) == (1_000, 1_005, True)
    assert listed["files"][0] == {"name": "0000", "path": f"{folder}/0000", "type": "file", "size": 0}


async def test_the_entry_point_takes_provider_and_template(unsandboxed_plane: ScriptedPlane) -> None:
    """Seed 001, rule 139: the server passes its template."""
    options = ToolSetOptions(template="code-interpreter-v1", provider="scripted", environ={"HOME": "/nonexistent"})
    async with open_toolset(options) as session:
        assert (await Tools(session).call("run_command", command="echo hi"))["stdout"] == "hi\n"
    assert unsandboxed_plane.script.of("create")[0]["template"] == "code-interpreter-v1"
    assert unsandboxed_plane.alive == []


async def test_a_warm_provider_that_fails_is_reported_by_the_first_call(
    doors: Doors, scripted_plane: ScriptedPlane
) -> None:
    """Warming in the background must not end the session."""
    async with open_tools(doors) as tools:
        scripted_plane.script.fail_next("create", ProviderUnavailable())
        assert (await tools.refused("run_command", command="true"))["code"] == "provider_unavailable"


@pytest.mark.parametrize(
    "said",
    [
        "curl: (6) Could not resolve host: example.com",
        "[Errno -3] Temporary failure in name resolution",
        "Error: getaddrinfo EAI_AGAIN example.com",
        "ping: connect: Network is unreachable",
    ],
)
async def test_what_finds_no_host_is_told_that_a_sandbox_has_no_network(tools: Tools, said: str) -> None:
    """Whoever is not told tries again and again. What succeeds, or fails for another reason, is not told."""
    note = "It looked for a host in vain."
    command = f"echo '{said}' >&2; exit {{}}"
    assert (await tools.call("run_command", command=command.format(6)))["note"].startswith(note)
    assert "note" not in await tools.call("run_command", command=command.format(0))
    assert "note" not in await tools.call("run_command", command="echo 'no such file' >&2; exit 1")
    assert (await tools.call("run_code", code=f"raise OSError({said!r})"))["note"].startswith(note)
    made = await tools.call("start_task", command=command.format(7))
    ids = {"sandbox_id": made["sandbox_id"], "task_id": made["task_id"]}
    await tools.call("get_task", **ids, wait=45)
    with anyio.fail_after(60):
        while (found := await tools.call("get_task", **ids))["state"] == "running":
            await tools.call("get_task", **ids, wait=45, stderr_offset=found["stderr_size"])
    assert found["note"].startswith(note)
