"""`abx mcp deploy`: what it writes, what it says, and that it gives no secret away."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cloche_mcp_http import asgi
from tests.packages.cli.ran import Abx, Ran

TOKEN = "t0ken-of-a-client-0123456789abcdef"
KEY = "key-of-the-platform-0123456789"
FIVE = {
    "ABX_MCP_AUTH_TOKEN",
    "ABX_SANDBOX_API_KEY",
    "ABX_SANDBOX_BASE_URL",
    "ABX_SANDBOX_DOMAIN",
    "ABX_DEFAULT_TEMPLATE",
}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*FIVE, "ALIBABA_CLOUD_REGION_ID"):
        monkeypatch.delenv(name, raising=False)


def deploy(abx: Abx, *words: str) -> dict[str, Any]:
    """The document of a run that works."""
    ran = abx(["--json", "mcp", "deploy", *words])
    assert (ran.status, ran.err) == (0, ""), ran.err
    return json.loads(ran.out)


def config(folder: str = "mcp-artifact") -> dict[str, Any]:
    return yaml.safe_load(Path(folder, "config.yaml").read_text())


def secrets(folder: str = "mcp-artifact") -> dict[str, str]:
    lines = Path(f"{folder}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def everything_said(ran: Ran) -> str:
    return ran.out + ran.err


def test_deploy_writes_the_artefact_and_nothing_else(abx: Abx) -> None:
    """Checklist 186, 200 to 202."""
    done = deploy(abx, "--output-dir", "out/deep")
    assert sorted(path.name for path in Path("out/deep").iterdir()) == ["app.py", "config.yaml", "requirements.txt"]
    assert done["files"] == ["app.py", "config.yaml", "requirements.txt"]
    required = [line for line in Path("out/deep/requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"cloche\[mcp\]~=\d+\.\d+\.\d+", required[0])
    assert required[1:] == ["uvicorn>=0.29"]


def test_the_manifest_has_the_keys_and_defaults_of_the_seed(abx: Abx) -> None:
    """Checklist 189 to 193, 197, 204 to 207."""
    deploy(abx)
    found = config()
    variables = found.pop("environment_variables")
    assert found == {
        "function_name": "agent-sandbox-mcp",
        "region": "cn-hangzhou",
        "runtime": "python3.10",
        "handler": "app.app",
        "memory": 512,
        "timeout": 600,
        "http_trigger": {"methods": ["POST", "GET", "DELETE"], "enable_session_affinity": True},
    }
    assert variables["ABX_DEFAULT_TEMPLATE"] == "base"
    assert set(variables) <= FIVE


def test_every_option_reaches_the_manifest(abx: Abx) -> None:
    """Checklist 189 to 193, 197, 199, 207."""
    words = ["--name", "mine", "--region", "eu-1", "--template", "odd \"#'\n", "--memory", "1024", "--timeout", "60"]
    deploy(abx, *words, "--no-session-affinity", "--custom-domain", "mcp.example.org")
    found = config()
    assert found["environment_variables"]["ABX_DEFAULT_TEMPLATE"] == "odd \"#'\n"
    assert [found[key] for key in ("function_name", "region", "memory", "timeout", "custom_domain")] == [
        "mine",
        "eu-1",
        1024,
        60,
        "mcp.example.org",
    ]
    assert found["http_trigger"]["enable_session_affinity"] is False


def test_the_region_is_taken_from_the_first_layer_that_has_one(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checklist 190."""
    assert deploy(abx)["region"] == "cn-hangzhou"
    Path(".abx").mkdir()
    Path(".abx/config.toml").write_text('[core]\nregion = "from-config"\n')
    assert deploy(abx)["region"] == "from-config"
    monkeypatch.setenv("ALIBABA_CLOUD_REGION_ID", "from-environment")
    assert deploy(abx)["region"] == "from-environment"
    assert deploy(abx, "--region", "from-option")["region"] == "from-option"


def test_the_token_is_taken_from_the_first_source_that_has_one(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checklist 194 to 196: file, generated, environment; without any a new one, which later runs keep."""
    Path("token").write_text(f"# of the server\ndefault={TOKEN}\n")
    assert deploy(abx)["token"]["source"] == "generated"
    first = secrets()["ABX_MCP_AUTH_TOKEN"]
    assert re.fullmatch(r"[0-9a-f]{64}", first)
    assert deploy(abx)["token"]["source"] == "earlier run"
    assert secrets()["ABX_MCP_AUTH_TOKEN"] == first
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", "from-the-environment")
    assert deploy(abx)["token"]["source"] == "environment"
    assert secrets()["ABX_MCP_AUTH_TOKEN"] == "from-the-environment"
    assert deploy(abx, "--generate-token")["token"]["source"] == "generated"
    assert secrets()["ABX_MCP_AUTH_TOKEN"] not in (first, "from-the-environment")
    assert deploy(abx, "--auth-token-file", "token")["token"]["source"] == "file"
    assert secrets()["ABX_MCP_AUTH_TOKEN"] == TOKEN


@pytest.mark.parametrize(("text", "token"), [("abc==\n", "abc=="), ("me=abc=\n", "abc="), ("  plain  \n", "plain")])
def test_a_token_file_holds_the_token_alone_or_with_its_name(abx: Abx, text: str, token: str) -> None:
    """The form that `abx mcp start --auth-token-file` reads works here too."""
    Path("token").write_text(text)
    deploy(abx, "--auth-token-file", "token")
    assert secrets()["ABX_MCP_AUTH_TOKEN"] == token


@pytest.mark.parametrize(
    ("text", "status"), [("", 2), ("a=1\nb=2\n", 2), ("two words\n", 2), ("\x00\xff", 2), (None, 4)]
)
def test_a_token_file_that_is_none_is_refused_without_a_word_of_it(abx: Abx, text: str | None, status: int) -> None:
    if text is not None:
        Path("token").write_bytes(text.encode("latin-1"))
    ran = abx(["mcp", "deploy", "--auth-token-file", "token"])
    assert (ran.status, ran.out) == (status, "")
    assert "--auth-token-file" in ran.err
    assert "two words" not in ran.err
    assert not Path("mcp-artifact").exists()


@pytest.mark.parametrize("option", ["--sandbox-api-key", "--api-key", None])
def test_secrets_are_in_one_private_file_and_nowhere_else(
    abx: Abx, monkeypatch: pytest.MonkeyPatch, option: str | None
) -> None:
    """Checklist 198, 209; the artefact is what people pack, copy and commit."""
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", TOKEN)
    if option is None:
        monkeypatch.setenv("ABX_SANDBOX_API_KEY", KEY)
    words = [] if option is None else [option, KEY]
    said = everything_said(abx(["mcp", "deploy", "--target", "docker", *words]))
    assert secrets() == {"ABX_MCP_AUTH_TOKEN": TOKEN, "ABX_SANDBOX_API_KEY": KEY}
    assert stat.S_IMODE(os.stat("mcp-artifact.env").st_mode) == 0o600
    said += json.dumps(deploy(abx, "--target", "docker", *words))
    said += json.dumps(deploy(abx, "--target", "docker", "--dry-run", *words))
    said += "".join(path.read_text() for path in Path("mcp-artifact").iterdir())
    assert TOKEN not in said
    assert KEY not in said
    assert config()["environment_variables"]["ABX_MCP_AUTH_TOKEN"] == "${ABX_MCP_AUTH_TOKEN}"


def test_the_steps_and_the_masked_configuration_of_a_client_are_printed(
    abx: Abx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checklist 184, 188, 208, 209."""
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", TOKEN)
    ran = abx(["mcp", "deploy", "--custom-domain", "mcp.example.org"])
    assert (ran.status, ran.err) == (0, "")
    steps = re.findall(r"^ +\d\. .*$", ran.out, re.MULTILINE)
    for number, words in enumerate(["Package", "Create the function", "Create an HTTP trigger", "Mcp-Session-Id"]):
        assert words in steps[number]
    shown = json.loads(ran.out[ran.out.index("\n{") :])
    assert shown == {
        "mcpServers": {
            "agent-sandbox-remote": {
                "url": "https://mcp.example.org/mcp",
                "headers": {"Authorization": "Bearer t0ke…"},
            }
        }
    }


def test_a_short_token_is_masked_whole(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABX_MCP_AUTH_TOKEN", "short-one")
    assert deploy(abx)["token"]["masked"] == "…"


def test_the_secrets_of_the_folder_one_stands_in_are_beside_it(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("here").mkdir()
    monkeypatch.chdir("here")
    done = deploy(abx, "--output-dir", ".")
    assert Path(done["secrets_file"]) == Path("../here.env").resolve()
    assert not list(Path().glob("*.env"))


def test_a_dry_run_shows_everything_and_writes_nothing(abx: Abx) -> None:
    before = sorted(Path().rglob("*"))
    shown = deploy(abx, "--dry-run", "--target", "docker")
    assert sorted(shown["contents"]) == shown["files"]
    assert shown["written"] is False
    text = abx(["mcp", "deploy", "--dry-run"]).out
    assert "from cloche_mcp_http import asgi_app" in text
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("name", ["app.py", "Dockerfile", "../mcp-artifact.env"])
@pytest.mark.parametrize("kind", ["somebody's", "changed", "link", "folder"])
def test_what_is_not_ours_is_never_replaced(abx: Abx, name: str, kind: str) -> None:
    """A file that somebody else wrote, or changed after us, or a link that leads elsewhere."""
    path = Path("mcp-artifact", name)
    if kind == "changed":
        deploy(abx, "--target", "docker")
        path.write_text(path.read_text() + "# mine\n")
    else:
        Path("mcp-artifact").mkdir()
        Path("elsewhere").write_text("elsewhere")
        match kind:
            case "link":
                path.symlink_to(Path("elsewhere").absolute())
            case "folder":
                path.mkdir()
            case _:
                path.write_text("mine\n")
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    ran = abx(["mcp", "deploy", "--target", "docker"])
    assert (ran.status, ran.out) == (2, "")
    assert path.name in ran.err
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before


def test_a_second_run_replaces_what_is_still_ours_and_leaves_the_rest(abx: Abx) -> None:
    deploy(abx)
    Path("mcp-artifact/notes.txt").write_text("mine")
    deploy(abx, "--memory", "2048")
    assert config()["memory"] == 2048
    assert Path("mcp-artifact/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "s3cret name"],
        ["--region", "S3CRET!"],
        ["--custom-domain", "https://s3cret"],
        ["--memory", "1"],
        ["--sandbox-api-key", "s3cret key"],
        ["--target", "s3cret"],
        ["--auth-token-file", "s3cret", "--generate-token"],
    ],
)
def test_a_wrong_option_is_named_and_its_value_is_not(abx: Abx, words: list[str]) -> None:
    ran = abx(["mcp", "deploy", *words])
    assert (ran.status, ran.out) == (2, "")
    assert words[0] in ran.err
    assert "s3cret" not in ran.err.lower()
    assert list(Path().iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(abx: Abx) -> None:
    Path("file").write_text("")
    ran = abx(["mcp", "deploy", "--output-dir", "file/below"])
    assert (ran.status, ran.out) == (2, "")
    assert "--output-dir" in ran.err


def test_the_image_recipe_lies_in_the_folder_and_takes_no_secret_into_the_image(abx: Abx) -> None:
    """`--target docker`: the build context is the folder, and the token is given to the container at its start."""
    assert deploy(abx, "--target", "docker", "--output-dir", "out")["url"] == "https://<HOST_OF_THE_PROXY>/mcp"
    assert sorted(path.name for path in Path("out").iterdir()) == [
        ".dockerignore",
        "Dockerfile",
        "app.py",
        "compose.yaml",
        "config.yaml",
        "requirements.txt",
    ]
    copied = re.findall(r"^COPY (\S+)", Path("out/Dockerfile").read_text(), re.MULTILINE)
    kept = re.findall(r"^!(\S+)", Path("out/.dockerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(kept) == ["app.py", "requirements.txt"]
    service = yaml.safe_load(Path("out/compose.yaml").read_text())["services"]["mcp"]
    assert Path("out", service["env_file"][0]["path"]).resolve() == Path("out.env").resolve()
    assert "USER 10001" in Path("out/Dockerfile").read_text()


async def test_the_artefact_serves_who_has_its_token_and_refuses_others(abx: Abx) -> None:
    """Checklist 203, 210, 211: by its own start command, with the variables of its own secrets file."""
    deploy(abx, "--output-dir", "out")
    environ = {"PATH": os.environ["PATH"], "HOME": str(Path().absolute()), **secrets("out")}
    bare = {name: value for name, value in environ.items() if name != "ABX_MCP_AUTH_TOKEN"}
    command = [sys.executable, "-m", "uvicorn", "app:app", "--host", "127.0.0.1", "--port", "0"]
    with anyio.fail_after(60):
        refused = await anyio.run_process(command, cwd="out", env=bare, stderr=subprocess.STDOUT, check=False)
        assert refused.returncode != 0
        assert b"ABX_MCP_AUTH_TOKEN" in refused.stdout
        async with await anyio.open_process(command, cwd="out", env=environ, stderr=subprocess.STDOUT) as process:
            try:
                assert process.stdout is not None
                said = b""
                while (found := re.search(rb"running on (http://\S+)", said)) is None:
                    said += await process.stdout.receive()
                await _speak(f"{found[1].decode()}/mcp", secrets("out")["ABX_MCP_AUTH_TOKEN"])
            finally:
                process.terminate()
                async for _ in process.stdout or ():
                    pass


async def _speak(url: str, token: str) -> None:
    async with httpx2.AsyncClient() as client:
        for method in ("POST", "GET", "DELETE"):
            assert (await client.request(method, url)).status_code == 401
        wrong = await client.post(url, headers={"Authorization": "Bearer wrong"})
        assert wrong.status_code == 401

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) == 15


def test_the_artefact_is_written_without_a_connection(abx: Abx, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checklist 187: no platform is called."""

    def refuse(*_arguments: object, **_named: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    deploy(abx, "--sandbox-api-key", KEY)


def test_the_artefact_reads_the_five_variables_of_its_environment(abx: Abx) -> None:
    """Checklist 203: app.py names them, and what it starts hands the environment to the tools whole."""
    deploy(abx)
    assert set(re.findall(r"ABX_[A-Z_]+", Path("mcp-artifact/app.py").read_text())) == FIVE
    seen: list[Mapping[str, str]] = []

    def make(**named: Any) -> None:
        seen.append({"template": named["template"], **named["environ"]})

    environ = {name: f"value of {name}" for name in FIVE} | {"ABX_MCP_AUTH_TOKEN": TOKEN}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asgi, "create_mcp_app", make)
        asgi.app_from_environ(environ)
    assert seen == [{"template": "value of ABX_DEFAULT_TEMPLATE", **environ}]
