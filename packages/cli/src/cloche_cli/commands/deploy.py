"""`abx mcp deploy`: the artefact of a remote server."""

import re

import click

from cloche_cli.lazy import command
from cloche_cli.parameters import OneOf, Text, WholeNumber
from cloche_cli.usage import Refused

TARGETS = ("function", "docker")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*", re.IGNORECASE)


class _Matching(click.ParamType[str]):
    """Text of one form."""

    name = "text"

    def __init__(self, form: re.Pattern[str], sentence: str) -> None:
        self.form = form
        self.sentence = sentence

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self.form.fullmatch(str(value)):
            raise Refused("pattern", self.sentence)
        return str(value)


def _deploy(
    name: str,
    region: str | None,
    template: str,
    memory: int,
    timeout: int,
    auth_token_file: str | None,
    generate_token: bool,
    enable_session_affinity: bool,
    sandbox_api_key: str | None,
    custom_domain: str | None,
    output_dir: str,
    target: str,
    dry_run: bool,
) -> int:
    from cloche_cli.deploying import deploy
    from cloche_cli.deployment import DeployOptions

    options = DeployOptions(
        name=name,
        region=region,
        template=template,
        memory_mb=memory,
        timeout_s=timeout,
        auth_token_file=auth_token_file,
        generate_token=generate_token,
        session_affinity=enable_session_affinity,
        sandbox_api_key=sandbox_api_key,
        custom_domain=custom_domain,
    )
    return deploy(options, output_dir, target, dry_run=dry_run)


deploy = command(
    "deploy",
    _deploy,
    help=(
        "Write what a remote MCP server is deployed from, and print the steps that are left to do by hand. No "
        "platform is called.\n\n"
        "The folder has app.py (an ASGI application, app.app), requirements.txt and config.yaml, a description of the "
        "function; with --target docker also what makes an image of it. None of them holds a secret: the bearer token "
        "and the key are in a file beside the folder that only you can read, and are printed masked. Files that were "
        "changed since, or that something else wrote, are not replaced."
    ),
    examples=[
        "abx mcp deploy",
        "abx mcp deploy --name agent-sandbox-mcp --region cn-hangzhou --generate-token --output-dir ./mcp-artifact",
        "abx mcp deploy --auth-token-file token.txt --custom-domain mcp.example.org",
        "abx mcp deploy --target docker --output-dir ./image",
        "abx --json mcp deploy --dry-run",
    ],
    params=[
        click.Option(
            ["--name"],
            type=_Matching(_NAME, "must be 1 to 64 letters, digits, _ and -, and begin with a letter or _."),
            default="agent-sandbox-mcp",
            show_default=True,
            help="Name of the function.",
        ),
        click.Option(
            ["--region"],
            type=Text(64),
            help="Region of the function. Default: ALIBABA_CLOUD_REGION_ID, else the region that is configured, else "
            "cn-hangzhou.",
        ),
        click.Option(
            ["--template"],
            type=Text(128),
            default="base",
            show_default=True,
            help="Template of sandboxes that name none.",
        ),
        click.Option(
            ["--memory"], type=WholeNumber(128, 32768), default=512, show_default=True, help="Megabytes of the server."
        ),
        click.Option(
            ["--timeout"],
            type=WholeNumber(1, 86400),
            default=600,
            show_default=True,
            help="Seconds that one request may take.",
        ),
        click.Option(
            ["--auth-token-file"],
            type=Text(4096),
            metavar="FILE",
            help="File with the bearer token, alone or as NAME=TOKEN. Default: ABX_MCP_AUTH_TOKEN, else that of an "
            "earlier run for the same folder, else a new one.",
        ),
        click.Option(["--generate-token"], is_flag=True, help="Make a new bearer token."),
        click.Option(
            ["--enable-session-affinity/--no-session-affinity"],
            default=True,
            show_default=True,
            help="Whether requests of one session go to one instance.",
        ),
        click.Option(
            ["--sandbox-api-key", "--api-key"],
            type=Text(4096),
            metavar="KEY",
            help="Key of the sandbox platform. Default: ABX_SANDBOX_API_KEY, which other users of this machine do not "
            "see in the list of processes.",
        ),
        click.Option(
            ["--custom-domain"],
            type=_Matching(_HOST, "must be the name of a host, such as mcp.example.org."),
            metavar="HOST",
            help="Name that clients connect to.",
        ),
        click.Option(
            ["-o", "--output-dir", "--output"],
            type=Text(4096),
            default="mcp-artifact",
            show_default=True,
            metavar="DIR",
            help="Folder to write.",
        ),
        click.Option(
            ["--target"],
            type=OneOf(TARGETS),
            default="function",
            show_default=True,
            help="docker adds a Dockerfile, a .dockerignore and an example for compose.",
        ),
        click.Option(["--dry-run"], is_flag=True, help="Show the files and the steps; write nothing."),
    ],
)
