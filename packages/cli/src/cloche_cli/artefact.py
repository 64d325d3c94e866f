"""The files of a deployment: what runs, what it needs, and how a platform is told about it.

No file of the artefact holds a secret: it names the variables, and their values are in a file beside it that only
its owner can read.

Source: seed 001, part 7; checklist 201 to 207, 211; decisions, "Names and versions".
"""

import json
from collections.abc import Mapping
from typing import Final

from cloche_cli import __version__
from cloche_cli.deployment import KEY_VARIABLE, TOKEN_VARIABLE, Deployment

PORT: Final = 9000
START: Final = f"uvicorn app:app --host 0.0.0.0 --port {PORT}"
PACKAGE: Final = (
    "python3.10 -m pip install -r requirements.txt -t package && cp app.py package && "
    "(cd package && zip -r ../package.zip .)"
)

_APP = '''"""The MCP server of Cloche as an ASGI application, `app.app`. It reads these variables when it starts:

ABX_MCP_AUTH_TOKEN      the bearer token that every client needs; without it nothing is served
ABX_SANDBOX_API_KEY     the key of the sandbox platform; never the token of a client
ABX_SANDBOX_BASE_URL    another address of the platform
ABX_SANDBOX_DOMAIN      another domain of its sandboxes
ABX_DEFAULT_TEMPLATE    the template of sandboxes that name none
"""

from cloche_mcp_http import asgi_app

app = asgi_app
'''

_DOCKERFILE = f"""FROM python:3.12-slim
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN useradd --uid 10001 --create-home mcp
WORKDIR /srv/mcp
COPY requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY app.py ./
USER 10001
EXPOSE {PORT}
# One process: sessions live in it.
CMD {json.dumps(START.split())}
"""

_DOCKERIGNORE = """*
!app.py
!requirements.txt
"""


def files(deployment: Deployment) -> Mapping[str, str]:
    """The artefact: its files by name."""
    return {
        "app.py": _APP,
        "config.yaml": _config(deployment),
        "requirements.txt": f"cloche[mcp]~={__version__}\nuvicorn>=0.29\n",
    }


def image_recipe(deployment: Deployment, secrets_file: str) -> Mapping[str, str]:
    """What makes an image of the artefact, by name.

    Args:
        secrets_file: name of the file beside the artefact's folder.
    """
    return {
        "Dockerfile": _DOCKERFILE,
        ".dockerignore": _DOCKERIGNORE,
        "compose.yaml": _compose(deployment, secrets_file),
    }


def secrets_text(deployment: Deployment) -> str:
    """The variables that are not in the artefact, as `docker run --env-file` reads them."""
    lines = [f"{name}={value}" for name, value in deployment.secret_variables.items()]
    return "# Secrets: keep this file, share it with nobody, commit it nowhere.\n" + "\n".join(lines) + "\n"


def token_in(text: str) -> str | None:
    """The token in what `secrets_text` wrote."""
    prefix = f"{TOKEN_VARIABLE}="
    return next((line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)), None)


def _config(deployment: Deployment) -> str:
    """A description for whoever makes the function. No platform reads it as it is."""
    # JSON's strings are YAML's, whatever is in them.
    lines = [
        "# A description of the function for people and scripts; no request of a platform has this form.",
        f"function_name: {json.dumps(deployment.name)}",
        f"region: {json.dumps(deployment.region)}",
        "runtime: python3.10",
        "handler: app.app",
        f"memory: {deployment.memory_mb}",
        f"timeout: {deployment.timeout_s}",
        "environment_variables:",
        *(f"  {name}: {json.dumps(value)}" for name, value in deployment.variables.items()),
        *(f'  {name}: "${{{name}}}"' for name in (TOKEN_VARIABLE, KEY_VARIABLE)),
        "http_trigger:",
        "  methods: [POST, GET, DELETE]",
        f"  enable_session_affinity: {json.dumps(deployment.session_affinity)}",
    ]
    if deployment.custom_domain is not None:
        lines.append(f"custom_domain: {json.dumps(deployment.custom_domain)}")
    return "\n".join(lines) + "\n"


def _compose(deployment: Deployment, secrets_file: str) -> str:
    variables = "\n".join(f"      {name}: {json.dumps(value)}" for name, value in deployment.variables.items())
    return f"""# `docker compose up --build` here; a proxy in front brings TLS.
services:
  mcp:
    build: .
    environment:
{variables}
    env_file:
      - path: {json.dumps(f"../{secrets_file}")}
        format: raw
    ports: ["127.0.0.1:{PORT}:{PORT}"]
    mem_limit: {deployment.memory_mb}m
    read_only: true
    tmpfs: [/tmp]
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    init: true
    restart: unless-stopped
"""


def client_config(deployment: Deployment) -> Mapping[str, object]:
    """What a client is configured with, its token masked. Source: seed 001, part 6, "Remote"."""
    headers = {"Authorization": f"Bearer {deployment.token.masked}"}
    return {"mcpServers": {"agent-sandbox-remote": {"url": deployment.url, "headers": headers}}}
