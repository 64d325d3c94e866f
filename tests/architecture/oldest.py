"""Install the packages that run on Python 3.10 there, import all of them, and serve a client over HTTP.

`nox -s oldest` runs this with `python3.10`, or the interpreter that OLDEST_PYTHON names; without one it says so
and fails. What is newer than 3.10 is an error of the type checker already; this is about what it cannot see.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.architecture.workspace import ROOT

PACKAGES = ("contract[mcp]", "sdk", "mcp-http[server]")
MODULES = ("cloche_contract", "cloche_sdk", "cloche_mcp_http")
# Runs there: imports every module, then answers one client of each protocol era over real HTTP.
_INSIDE = """
import asyncio, importlib, json, pkgutil, sys
imported = 0
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            imported += 1
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from cloche_mcp_http import create_mcp_app
from cloche_mcp_http.server import HttpServer, bind

async def main():
    listener = bind("127.0.0.1", 0, guarded=True)
    server = HttpServer(create_mcp_app(environ={"ABX_PROVIDER": "none", "ABX_AUDIT_FILE": "off"}))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    tools, codes = {}, {}
    for mode in ("legacy", "auto"):
        async with Client(streamable_http_client(url), mode=mode) as client:
            tools[mode] = len((await client.list_tools()).tools)
            failed = await client.call_tool("run_code", {"code": "1"})
            codes[mode] = json.loads(failed.content[0].text)["code"]
    server.end()
    await serving
    print(json.dumps({"python": sys.version.split()[0], "modules": imported, "tools": tools, "codes": codes}))

asyncio.run(main())
"""


def main() -> int:
    python = shutil.which(os.environ.get("OLDEST_PYTHON", "python3.10"))
    if python is None:
        sys.stdout.write("There is no python3.10 here: install one, or name it with OLDEST_PYTHON.\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="cloche-oldest-") as folder:
        inside = Path(folder) / "bin" / "python"
        uv = [sys.executable, "-m", "uv"]
        wanted = [str(ROOT / "packages" / package) for package in PACKAGES]
        subprocess.run([*uv, "venv", "--quiet", "--clear", "--python", python, folder], check=True)
        subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(inside), *wanted], check=True)
        done = subprocess.run([str(inside), "-I", "-c", _INSIDE, *MODULES], capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout or done.stderr)
    if done.returncode:
        return 1
    told = json.loads(done.stdout.splitlines()[-1])
    return 0 if len(set(told["tools"].values())) == 1 and told["modules"] > 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
