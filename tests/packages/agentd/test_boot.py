"""What the agent needs to start: nothing but an interpreter and its folder."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import cloche_agentd
from tests.packages.agentd.plain_agent import Client, running_agent

FOLDER = Path(cloche_agentd.describe()["folder"])
AUDITED = Path(__file__).with_name("audited_agent.py")


def _isolated(code: str) -> str:
    """Run code in an isolated interpreter without site packages and return what it prints."""
    program = f"import sys; sys.path.insert(0, {str(FOLDER.parent)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], env={}, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_agent_imports_nothing_but_the_standard_library() -> None:
    """D26: under -I -S, every loaded module comes from the standard library or the agent's own folder."""
    code = (
        "import sysconfig, cloche_agentd; cloche_agentd.preload()\n"
        f"homes = (sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib'), {str(FOLDER)!r})\n"
        "files = [m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)]\n"
        "print([f for f in files if not f.startswith(homes) or 'site-packages' in f])"
    )
    assert _isolated(code) == "[]\n"


def test_importing_the_package_loads_no_linux_module() -> None:
    """Everything imports on every platform: ctypes and fcntl come only with the entry points."""
    code = "import cloche_agentd; print([m for m in ('ctypes', 'fcntl', 'asyncio') if m in sys.modules])"
    assert _isolated(code) == "[]\n"


def test_description_names_a_folder_that_runs() -> None:
    """Entry point group cloche.agent: folder and versions."""
    described = cloche_agentd.describe()
    assert (FOLDER / "__main__.py").is_file()
    assert described["protocol"] == "1"
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
    assert described["version"] == project["version"]


def test_nothing_is_imported_after_boot(tmp_path: Path) -> None:
    """The root is switched after boot: an import by the agent itself would fail, or load a file of the sandbox."""
    log = tmp_path / "imports"
    with running_agent(tmp_path, program=(sys.executable, "-I", "-S", str(AUDITED), str(log))) as agent:
        with agent.client() as client:
            _use_everything(client)
        with agent.client() as client:
            client.call("POST", "/cloche/kill")
    # User code's own import shows that imports are seen.
    assert log.read_text() == "colorsys\n"


def _use_everything(client: Client) -> None:
    client.call("GET", "/health")
    client.call("GET", "/cloche/info")
    client.call("GET", "/metrics")
    client.rpc("/process.Process/List", {}, authorization="Basic " + base64.b64encode(b"user:").decode())
    client.run("printf '\\377'; exit 3", more={"stdin": True, "tag": "t"})
    client.run("sleep 5", connect_timeout_ms="20")
    client.run("x", process={"cwd": "/none"})
    client.run("true", process={"envs": {"A": "x" * 70000}})
    client.put("ä", b"1")
    client.get("ä", range="bytes=0-0")
    client.get("missing")
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n'
    client.call("POST", "/files", form, content_type="multipart/form-data; boundary=b")
    client.call("POST", "/files?path=z", gzip.compress(b"x"), content_encoding="gzip")
    client.call("GET", "/files?path=a&signature=v1_x&signature_expiration=1")
    for method, message in (
        ("Stat", {"path": "ä"}),
        ("ListDir", {"path": "/usr", "depth": 1}),
        ("MakeDir", {"path": "d/e"}),
        ("Move", {"source": "d", "destination": "g"}),
        ("Remove", {"path": "g"}),
        ("Nothing", {}),
    ):
        client.rpc(f"/filesystem.Filesystem/{method}", message)
    for code in ("print(1); 2", "1/0", "a = (", "raise SystemExit('x')", "display({'a': 1})", "x = [1]\nx", "exit()"):
        client.execute(code)
    client.execute("while True: pass", timeout_ms=100)
    client.execute("import colorsys")
    client.execute("echo 1", language="shell")
    client.call("POST", "/execute", json.dumps({"code": "1", "language": "cobol"}).encode())
    made = client.call("POST", "/contexts", b"{}").value["id"]
    client.execute("!true", context_id=made)
    client.call("DELETE", f"/contexts/{made}")
