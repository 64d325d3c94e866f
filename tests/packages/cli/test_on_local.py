"""`abx` with the provider that people get without any configuration: real sandboxes on this machine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.packages.local.images import small_root

WITHIN_S = 60

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An empty home: nothing is configured, and no sandbox of another test is seen."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "ABX_LOCAL_STATE_DIR": str(tmp_path / "state"),
        "ABX_LOCAL_RUNTIME_DIR": str(tmp_path / "run"),
    }


@pytest.fixture
def abx_process(environ: dict[str, str]) -> Run:
    """Run `abx` in a process of its own."""

    def run(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            _command(words),
            input="",
            capture_output=True,
            text=True,
            env={**environ, **more},
            cwd=environ["HOME"],
            timeout=WITHIN_S,
            check=False,
        )

    return run


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "cloche_cli", *words]


def test_code_runs_in_a_sandbox_and_not_on_this_machine(abx_process: Run, environ: Mapping[str, str]) -> None:
    """Issue "The spine": an ordinary machine, no Docker, no account."""
    Path(environ["HOME"], "mine.txt").write_text("host")
    ran = abx_process("run", "import os, getpass; print(os.getpid() < 100, os.listdir(os.path.expanduser('~')))")
    assert (ran.returncode, ran.stdout) == (0, "True []\n"), ran.stderr
    assert json.loads(abx_process("sandbox", "list", "--json").stdout)["sandboxes"] == []


def test_the_environment_of_this_process_stays_outside(abx_process: Run) -> None:
    """Fault E1."""
    ran = abx_process("exec", "env; cat /proc/*/environ", MY_SECRET_KEY="s3cr3t")
    assert "s3cr3t" not in ran.stdout + ran.stderr


def test_a_created_sandbox_is_seen_and_used_and_killed_by_other_processes(abx_process: Run) -> None:
    """Issue "The spine", items 5 and 8."""
    sandbox_id = abx_process("sandbox", "create", "--timeout", "120").stdout.strip()
    listed = json.loads(abx_process("sandbox", "list", "--json").stdout)["sandboxes"]
    assert [entry["sandbox_id"] for entry in listed] == [sandbox_id]
    assert abx_process("exec", "--sandbox", sandbox_id, "echo kept > note").returncode == 0
    assert abx_process("exec", "--sandbox", f"local:{sandbox_id}", "cat note").stdout == "kept\n"
    assert abx_process("sandbox", "kill", sandbox_id).returncode == 0
    assert abx_process("sandbox", "get", sandbox_id).returncode == 4


def test_a_listening_sandbox_answers_whoever_has_its_token(abx_process: Run) -> None:
    """Decision D3: the address is told with the sandbox, the token only where it is asked for."""
    made = json.loads(abx_process("--json", "sandbox", "create", "--listen").stdout)
    try:
        assert made["url"].startswith("http://127.0.0.1:")
        told = json.loads(abx_process("--json", "sandbox", "endpoint", made["sandbox_id"]).stdout)
        assert told["url"] == made["url"]
        request = Request(made["url"] + "/cloche/info", headers={"X-Access-Token": told["access_token"]})
        with build_opener(ProxyHandler({})).open(request, timeout=WITHIN_S) as answer:
            assert json.load(answer)["envd_version"] == told["envd_version"]
    finally:
        abx_process("sandbox", "kill", made["sandbox_id"])


def test_a_sandbox_without_a_port_has_no_endpoint(abx_process: Run) -> None:
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    refused = abx_process("--json", "sandbox", "endpoint", sandbox_id)
    abx_process("sandbox", "kill", sandbox_id)
    assert refused.returncode != 0
    assert json.loads(refused.stderr)["details"] == {"capability": "listener"}


def test_inspect_shows_mounts_users_and_what_enforces_each_limit(abx_process: Run) -> None:
    """Issue "The spine", item 8."""
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    shown = json.loads(abx_process("--json", "sandbox", "inspect", sandbox_id).stdout)
    text = abx_process("sandbox", "inspect", sandbox_id).stdout
    abx_process("sandbox", "kill", sandbox_id)
    assert shown["users"] in ("range", "single")
    assert {"user", "pid", "mnt", "net"} <= set(shown["namespaces"])
    assert all(bool(limit["enforced_by"]) == limit["enforced"] for limit in shown["limits"])
    assert any(mount["target"] == "/usr" and mount["read_only"] for mount in shown["mounts"])
    assert "RESOURCE" in text
    assert "/usr" in text


def test_diff_shows_what_was_changed_as_text_and_as_json(abx_process: Run) -> None:
    """Issue 3, part 5; W8. Names of user code do nothing to a terminal."""
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    assert abx_process("sandbox", "diff", sandbox_id).stdout == "Nothing was changed.\n"
    abx_process("exec", "--sandbox", sandbox_id, "--", "printf abc >'a\\\033[2J'; ln -s /etc/passwd l; chmod 700 /app")
    text = abx_process("sandbox", "diff", sandbox_id)
    assert text.stdout.splitlines() == [
        "modified  directory   700           -  /app  (mode was 755)",
        "added     file        644           3  /home/user/a\\\\\\x1b[2J",
        "added     symlink     777           -  /home/user/l -> /etc/passwd",
        "2 added, 1 modified, 0 deleted; 3 bytes in files that were added or rewritten.",
    ]
    assert "/usr" in text.stderr
    page = json.loads(abx_process("sandbox", "diff", sandbox_id, "--limit", "1", "--json").stdout)
    rest = json.loads(abx_process("sandbox", "diff", sandbox_id, "--after", page["next"], "--json").stdout)
    assert [entry["path"] for entry in page["entries"] + rest["entries"]][0::2] == ["/app", "/home/user/l"]
    assert rest["next"] is None
    assert abx_process("sandbox", "kill", sandbox_id).returncode == 0
    assert abx_process("sandbox", "diff", sandbox_id).returncode == 4


def test_logs_tell_what_happened_also_after_the_end(abx_process: Run) -> None:
    """Issue 3, part 5: no payload; followed to the end."""
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    abx_process("exec", "--sandbox", sandbox_id, "--", "echo s3cret; exit 3")
    lines = abx_process("sandbox", "logs", sandbox_id).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["started", "command_ended", "call"]
    assert "POST /process.Process/Start 200" in lines[2]
    abx_process("sandbox", "kill", sandbox_id)
    followed = abx_process("--json", "sandbox", "logs", sandbox_id, "--follow").stdout.splitlines()
    assert json.loads(followed[-1])["facts"] == {"reason": "killed"}
    assert "s3cret" not in "".join(followed)
    document = json.loads(abx_process("sandbox", "logs", sandbox_id, "--limit", "1", "--json").stdout)
    assert (document["alive"], [event["event"] for event in document["events"]]) == (False, ["ended"])
    assert abx_process("sandbox", "logs", "neverwas").returncode == 4


def test_prune_tells_what_it_frees_and_leaves_what_lives(abx_process: Run, environ: Mapping[str, str]) -> None:
    """Issue 3, part 7."""
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    abx_process("run", "1")
    dead = Path(environ["ABX_LOCAL_STATE_DIR"], "dead1")
    dead.mkdir()
    (dead / "record.json").write_text("x" * 5000)
    dry = abx_process("prune", "--dry-run")
    assert str(dead) in dry.stdout
    assert "would remove" in dry.stdout
    assert dead.exists()
    told = json.loads(abx_process("prune", "--json", "--logs-older-than", "0").stdout)
    kinds = {each["kind"] for each in told["removed"]}
    assert kinds == {"sandbox", "log"}
    assert (told["dry_run"], told["failed"], told["size"] > 5000) == (False, [], True)
    assert not dead.exists()
    assert abx_process("prune", "--logs-older-than", "0").stdout == "Nothing is left to remove.\n"
    assert abx_process("exec", "--sandbox", sandbox_id, "echo alive").stdout == "alive\n"
    assert abx_process("sandbox", "kill", "--all").stdout == f"killed {sandbox_id}\n"
    # What the sandbox stood on is removed once nothing stands on it.
    assert "template" in abx_process("prune").stdout


def test_a_sandbox_of_a_newer_version_is_listed_with_what_to_do(abx_process: Run, environ: Mapping[str, str]) -> None:
    """Issue 3, part 7: `abx sandbox list` does not crash, and nothing is guessed."""
    sandbox_id = abx_process("sandbox", "create").stdout.strip()
    record = Path(environ["ABX_LOCAL_STATE_DIR"], sandbox_id, "record.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": 2}))
    listed = abx_process("sandbox", "list")
    assert sandbox_id in listed.stdout
    assert "made by a newer version" in listed.stderr
    refused = abx_process("--json", "exec", "--sandbox", sandbox_id, "true")
    assert json.loads(refused.stderr)["code"] == "sandbox_incompatible"
    assert abx_process("sandbox", "kill", sandbox_id).returncode == 0


def test_doctor_says_that_this_machine_can(abx_process: Run) -> None:
    ran = abx_process("doctor", "--json")
    report = json.loads(ran.stdout)
    assert (ran.returncode, report["provider"], report["usable"]) == (0, "local", True)
    assert all(check["fix"] for check in report["checks"] if not check["ok"])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_of_the_whole_group_leaves_no_sandbox(
    abx_process: Run, environ: dict[str, str], number: signal.Signals, status: int
) -> None:
    """Ctrl-C in a terminal reaches every process of the group, helpers of the provider too."""
    with subprocess.Popen(
        _command(["exec", "echo up; sleep 300"]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, number)
        _out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, err) == (status, "")
    assert json.loads(abx_process("sandbox", "list", "--json").stdout)["sandboxes"] == []


def test_a_template_without_the_libraries_or_a_limit_that_cannot_hold_is_refused(abx_process: Run) -> None:
    assert abx_process("run", "--template", "no-such-template", "1").returncode == 4
    assert abx_process("sandbox", "create", "--region", "north").returncode == 1


def test_the_network_of_a_sandbox_is_shown_changed_and_explained(abx_process: Run) -> None:
    """Issue 3, Network: an allowlist at create and by live update; a denial names the rule and how to add it."""
    made = abx_process("sandbox", "create", "--allow-net", "Docs.Example.org")
    assert made.returncode == 0, made.stderr
    sandbox_id = made.stdout.strip()
    assert abx_process("sandbox", "network", sandbox_id).stdout == "docs.example.org\n"
    ran = abx_process("exec", "--sandbox", sandbox_id, "--", "curl -sS http://denied.example:8080/")
    assert "Rule to add: denied.example:8080" in ran.stdout
    assert "denied by the network allowlist: denied.example:8080" in ran.stderr
    assert "abx sandbox network ID --allow" in ran.stderr
    changed = abx_process(
        "--json", "sandbox", "network", sandbox_id, "--allow", "10.0.0.0/8:5432", "--remove", "docs.example.org"
    )
    assert json.loads(changed.stdout) == {"sandbox_id": sandbox_id, "rules": ["10.0.0.0/8:5432"]}
    assert "allowlist: 10.0.0.0/8:5432" in abx_process("sandbox", "inspect", sandbox_id).stdout
    wrong = abx_process("sandbox", "network", sandbox_id, "--allow", "http://docs.example.org")
    assert (wrong.returncode, "allow" in wrong.stderr) == (2, True)
    both = abx_process("exec", "--sandbox", sandbox_id, "--allow-net", "docs.example.org", "--", "true")
    assert both.returncode == 2
    assert abx_process("sandbox", "kill", sandbox_id).returncode == 0


def test_e15_what_lies_in_the_workspace_does_not_open_the_network(abx_process: Run, environ: Mapping[str, str]) -> None:
    """Faults E15: ./.env of a project does not weaken the policy; the environment of the operator decides."""
    Path(environ["HOME"], ".env").write_text("ABX_LOCAL_EGRESS=denied.example\n")
    program = "import os; print(os.environ.get('HTTP_PROXY'))"
    assert abx_process("run", program).stdout == "None\n"
    assert abx_process("run", program, ABX_LOCAL_EGRESS="docs.example.org").stdout == "http://127.0.0.1:3128\n"
    wrong = abx_process("run", program, ABX_LOCAL_EGRESS="*")
    assert (wrong.returncode, "ABX_LOCAL_EGRESS" in wrong.stderr) == (2, True)


async def test_an_imported_template_is_used_by_the_command_line_and_by_a_model(
    abx_process: Run, environ: Mapping[str, str], tmp_path: Path
) -> None:
    """Issue 6, part 4: `abx sandbox create --template NAME`, and create_sandbox's argument."""
    small_root(tmp_path / "rootfs")
    assert abx_process("template", "import", str(tmp_path / "rootfs"), "--name", "mine").returncode == 0
    sandbox_id = abx_process("sandbox", "create", "--template", "mine").stdout.strip()
    assert abx_process("exec", "--sandbox", sandbox_id, "cat /etc/motd").stdout == "small\n"
    busy = abx_process("template", "remove", "mine")
    assert (busy.returncode, busy.stdout) == (2, "")
    server = StdioServerParameters(command=sys.executable, args=["-m", "cloche_cli", "mcp", "start"], env=dict(environ))
    with anyio.fail_after(WITHIN_S):
        async with Client(server) as client:
            assert not (await client.call_tool("create_sandbox", {"template": "mine"})).is_error
            ran = await client.call_tool("run_command", {"command": "cat /etc/motd"})
            assert (ran.structured_content or {})["stdout"] == "small\n"
    assert abx_process("sandbox", "kill", "--all").returncode == 0
    assert abx_process("template", "remove", "mine").stdout == "removed mine\n"
