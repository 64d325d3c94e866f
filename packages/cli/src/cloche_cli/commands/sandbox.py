"""`abx sandbox`: make, see and end sandboxes that outlive the command."""

from typing import TYPE_CHECKING

import click

from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import OneOf, Pair, Text, Variable, WholeNumber, allow_net_option
from cloche_cli.usage import Refused

if TYPE_CHECKING:
    from cloche_contract.lifecycle import SandboxStatus

STATUSES = ("creating", "running", "paused", "pausing", "stopping", "stopped", "error")
FILTERS = ("id", "template", "status", "region")


def _provider() -> click.Option:
    return click.Option(["-p", "--provider"], type=Text(40), help="Default: ABX_PROVIDER, else local.")


def _region() -> click.Option:
    return click.Option(["--region"], type=Text(64), help="Region, for providers that have several.")


def _id() -> click.Argument:
    return click.Argument(["sandbox_id"], type=Text(1024), metavar="ID")


def _create(
    template: str | None,
    timeout: int,
    env: tuple[tuple[str, str], ...],
    cpu: int | None,
    memory: int | None,
    allow_net: tuple[str, ...],
    listen: bool,
    region: str | None,
    provider: str | None,
) -> int:
    from cloche_cli.sandboxes import CreateOptions, create_sandbox

    return create_sandbox(
        CreateOptions(
            template=template,
            timeout_s=timeout,
            envs=dict(env),
            cpu=cpu,
            memory_mb=memory,
            egress=allow_net or None,
            listen=listen,
            region=region,
            provider=provider,
        )
    )


def _list(
    status: "SandboxStatus | None",
    all_: bool,
    filters: tuple[tuple[str, str], ...],
    limit: int,
    offset: int,
    provider: str | None,
    region: str | None,
) -> int:
    from cloche_cli.listing import ListOptions, list_sandboxes

    return list_sandboxes(
        ListOptions(
            status=status,
            every_page=all_,
            filters=filters,
            limit=limit,
            offset=offset,
            provider=provider,
            region=region,
        )
    )


def _get(sandbox_id: str) -> int:
    from cloche_cli.sandboxes import show_sandbox

    return show_sandbox(sandbox_id)


def _inspect(sandbox_id: str) -> int:
    from cloche_cli.sandboxes import inspect_sandbox

    return inspect_sandbox(sandbox_id)


def _endpoint(sandbox_id: str) -> int:
    from cloche_cli.sandboxes import show_endpoint

    return show_endpoint(sandbox_id)


def _diff(sandbox_id: str, limit: int, after: str | None) -> int:
    from cloche_cli.changes import show_changes

    return show_changes(sandbox_id, limit, after)


def _logs(sandbox_id: str, follow: bool, limit: int) -> int:
    from cloche_cli.events import show_log

    return show_log(sandbox_id, limit, follow=follow)


def _network(sandbox_id: str, allow: tuple[str, ...], remove: tuple[str, ...]) -> int:
    from cloche_cli.sandboxes import update_network

    return update_network(sandbox_id, allow, remove)


def _upload(sandbox_id: str, file: str, path: str | None) -> int:
    from cloche_cli.copying import upload

    return upload(sandbox_id, file, path)


def _download(sandbox_id: str, path: str, file: str | None) -> int:
    from cloche_cli.copying import download

    return download(sandbox_id, path, file)


def _watch(sandbox_id: str, path: str, recursive: bool, timeout: int | None) -> int:
    from cloche_cli.watch import watch_directory

    return watch_directory(sandbox_id, path, recursive=recursive, timeout_s=timeout)


def _timeout(sandbox_id: str, seconds: int) -> int:
    from cloche_cli.sandboxes import set_timeout

    return set_timeout(sandbox_id, seconds)


def _kill(sandbox_ids: tuple[str, ...], all_: bool, provider: str | None) -> int:
    from cloche_cli.listing import kill_every_sandbox, kill_sandboxes

    if all_ and sandbox_ids:
        raise Refused("exclusive", "takes no ids: it is for every sandbox that is alive.", field="--all")
    if not all_ and not sandbox_ids:
        raise Refused("required", "is needed: at least one, or --all for every sandbox that is alive.", field="ID...")
    return kill_every_sandbox(provider) if all_ else kill_sandboxes(sandbox_ids)


create = command(
    "create",
    _create,
    help=(
        "Make a sandbox and print its id. It lives until its timeout, or until it is killed, also when "
        "this command has ended; every process of yours can use it."
    ),
    examples=[
        "abx sandbox create",
        "abx sandbox create --template code-interpreter-v1 --timeout 3600",
        "id=$(abx sandbox create) && abx exec --sandbox $id -- ls /",
        "abx sandbox create --env API_TOKEN --memory 512",
        "abx sandbox create --allow-net docs.example.org --allow-net files.example.org",
        "abx --json sandbox create --listen",
    ],
    params=[
        click.Option(["-t", "--template"], type=Text(128), help="Default: ABX_DEFAULT_TEMPLATE, else base."),
        click.Option(
            ["--timeout"], type=WholeNumber(1, 86400), default=300, show_default=True, help="Seconds to live from now."
        ),
        click.Option(
            ["-e", "--env"],
            type=Variable(),
            multiple=True,
            help="A variable for everything that runs inside; NAME alone takes the value that it has here. Repeatable.",
        ),
        click.Option(["--cpu"], type=WholeNumber(1, 256), help="Cores. Refused where the host cannot hold the limit."),
        click.Option(
            ["--memory"], type=WholeNumber(1, 1048576), help="Megabytes. Refused where the host cannot hold the limit."
        ),
        allow_net_option(),
        click.Option(
            ["--listen"],
            is_flag=True,
            help="Answer on a port of 127.0.0.1 too, for clients of E2B. Every request needs the token.",
        ),
        _region(),
        _provider(),
    ],
)

list_ = command(
    "list",
    _list,
    help="List the sandboxes that are alive.",
    examples=[
        "abx sandbox list",
        "abx sandbox list --status running --limit 10",
        "abx sandbox list --filter template=base --filter id=7f3a",
        "abx --json sandbox list --all",
    ],
    params=[
        click.Option(["--status"], type=OneOf(STATUSES), help="Only sandboxes in this state."),
        click.Option(["-a", "--all", "all_"], is_flag=True, help="Every page, whatever --limit says."),
        click.Option(
            ["-f", "--filter", "filters"],
            type=Pair(FILTERS),
            multiple=True,
            help="Only sandboxes whose id begins so, or whose template, status or region is this. Repeatable.",
        ),
        click.Option(["--limit"], type=WholeNumber(1, 100), default=100, show_default=True, help="At most so many."),
        click.Option(
            ["--offset"], type=WholeNumber(0, 1000000), default=0, show_default=True, help="Leave out the first ones."
        ),
        _provider(),
        _region(),
    ],
)

get = command(
    "get",
    _get,
    help="Show what the provider says about a sandbox now.",
    examples=["abx sandbox get sb-7f3a", "abx --json sandbox get local:sb-7f3a"],
    params=[_id()],
)

inspect = command(
    "inspect",
    _inspect,
    help=(
        "Show how a sandbox is isolated: its mounts, its users, its limits and what enforces each of them. "
        "Paths of this host are shown: the output is for its operator, not for a model."
    ),
    examples=["abx sandbox inspect sb-7f3a", "abx --json sandbox inspect sb-7f3a"],
    params=[_id()],
)

endpoint = command(
    "endpoint",
    _endpoint,
    help=(
        "Show where other clients, such as those of E2B, reach a sandbox that was made with --listen: its address, "
        "the token that every request carries, and the version of E2B's agent that it is like. Whoever has the "
        "token can do anything in the sandbox."
    ),
    examples=["abx sandbox endpoint sb-7f3a", "abx --json sandbox endpoint sb-7f3a"],
    params=[_id()],
)

diff = command(
    "diff",
    _diff,
    help=(
        "Show what programs in a sandbox added, modified and deleted, compared with its template: everywhere that can "
        "be written, also /tmp, /home, /app and /dev/shm. What is shown read-only is not compared. Names are written "
        "with escapes; in JSON a name that is not UTF-8 comes with its bytes."
    ),
    examples=[
        "abx sandbox diff sb-7f3a",
        "abx sandbox diff sb-7f3a --limit 50",
        "abx --json sandbox diff sb-7f3a",
    ],
    params=[
        _id(),
        click.Option(
            ["--limit"], type=WholeNumber(1, 10000), default=1000, show_default=True, help="At most so many changes."
        ),
        click.Option(["--after"], type=Text(100000), help="Go on where a page ended: its `next`."),
    ],
)

logs = command(
    "logs",
    _logs,
    help=(
        "Show what happened in a sandbox: its start, each call with status and duration, how commands and code ended, "
        "denied destinations, and the end with its reason. Never what was sent or printed. Readable after the end "
        "too, until `abx prune` removes it or newer ones push it out."
    ),
    examples=[
        "abx sandbox logs sb-7f3a",
        "abx sandbox logs sb-7f3a --follow",
        "abx --json sandbox logs sb-7f3a --limit 20",
    ],
    params=[
        _id(),
        click.Option(["-f", "--follow"], is_flag=True, help="Go on until the sandbox ends; with --json one per line."),
        click.Option(
            ["--limit"], type=WholeNumber(1, 10000), default=1000, show_default=True, help="The newest so many events."
        ),
    ],
)

network = command(
    "network",
    _network,
    help=(
        "Show what a sandbox may reach, or change it at once. Only for sandboxes that were made with a network "
        "allowlist. Connections that lose their rule are cut.\n\n"
        "RULE is a host, *.host, an address or a network, with :port or for ports 80 and 443. Private, local and "
        "reserved addresses are reached only by a rule for an address or a network."
    ),
    examples=[
        "abx sandbox network sb-7f3a",
        "abx sandbox network sb-7f3a --allow docs.example.org --allow '*.files.example.org'",
        "abx sandbox network sb-7f3a --remove docs.example.org",
    ],
    params=[
        _id(),
        click.Option(["--allow"], type=Text(300), multiple=True, metavar="RULE", help="A rule to add. Repeatable."),
        click.Option(["--remove"], type=Text(300), multiple=True, metavar="RULE", help="A rule to remove. Repeatable."),
    ],
)

upload = command(
    "upload",
    _upload,
    help=(
        "Put a file into a sandbox, or every file below a folder; - is stdin. Each file has its mode, and is there "
        "when all of it is; a file that was there is replaced. Links are left out.\n\n"
        "PATH is absolute or relative to the home of the sandbox; with / at its end the name is kept. Without PATH the "
        "file lands in that home."
    ),
    examples=[
        "abx sandbox upload sb-7f3a data.csv",
        "abx sandbox upload sb-7f3a ./project /home/user/project",
        "tar -c src | abx sandbox upload sb-7f3a - src.tar",
    ],
    params=[
        _id(),
        click.Argument(["file"], type=Text(4096), metavar="FILE|FOLDER|-"),
        click.Argument(["path"], type=Text(4096), metavar="[PATH]", required=False),
    ],
)

download = command(
    "download",
    _download,
    help=(
        "Take a file of any size out of a sandbox, to FILE, into a folder, or to stdout (-). Without FILE it lands "
        "here under its own name. A file that is there is replaced when all of the new one has arrived."
    ),
    examples=[
        "abx sandbox download sb-7f3a report.pdf",
        "abx sandbox download sb-7f3a /home/user/out.parquet ./results/",
        "abx exec --sandbox sb-7f3a -- tar -cf out.tar out && abx sandbox download sb-7f3a out.tar - | tar -x",
    ],
    params=[
        _id(),
        click.Argument(["path"], type=Text(4096), metavar="PATH"),
        click.Argument(["file"], type=Text(4096), metavar="[FILE|FOLDER|-]", required=False),
    ],
)

watch = command(
    "watch",
    _watch,
    help=(
        "Tell what changes in a directory of a sandbox, a line for each change, until --timeout or Ctrl+C. With "
        "--json each line is a document. The type overflow says that changes were missed."
    ),
    examples=["abx sandbox watch sb-7f3a /home/user -r", "abx --json sandbox watch sb-7f3a /srv --timeout 60"],
    params=[
        _id(),
        click.Argument(["path"], type=Text(4096), metavar="PATH"),
        click.Option(["-r", "--recursive"], is_flag=True, help="Tell what lies below its directories too."),
        click.Option(["--timeout"], type=WholeNumber(1, 86400), help="Seconds to watch. Default: until Ctrl+C."),
    ],
)

timeout = command(
    "timeout",
    _timeout,
    help="Give a sandbox so many seconds to live from now, more or fewer than it had.",
    examples=["abx sandbox timeout sb-7f3a 3600"],
    params=[_id(), click.Argument(["seconds"], type=WholeNumber(1, 86400), metavar="SECONDS")],
)

kill = command(
    "kill",
    _kill,
    help="Kill sandboxes, with everything that runs in them. A sandbox that is gone already is an error (4).",
    examples=["abx sandbox kill sb-7f3a", "abx sandbox kill sb-7f3a sb-91c2", "abx sandbox kill --all"],
    params=[
        click.Argument(["sandbox_ids"], type=Text(1024), nargs=-1, metavar="[ID...]"),
        click.Option(["-a", "--all", "all_"], is_flag=True, help="Every sandbox that is alive, of this user."),
        click.Option(["-p", "--provider"], type=Text(40), help="With --all. Default: ABX_PROVIDER, else local."),
    ],
)

sandbox: click.Group = LazyGroup(
    "sandbox",
    help="Make, see and end sandboxes.",
    examples=["abx sandbox create --timeout 600", "abx sandbox list", "abx sandbox kill sb-7f3a"],
    lazy={
        name: f"cloche_cli.commands.sandbox:{attribute}"
        for name, attribute in [
            ("create", "create"),
            ("list", "list_"),
            ("get", "get"),
            ("inspect", "inspect"),
            ("endpoint", "endpoint"),
            ("upload", "upload"),
            ("download", "download"),
            ("diff", "diff"),
            ("logs", "logs"),
            ("network", "network"),
            ("watch", "watch"),
            ("timeout", "timeout"),
            ("kill", "kill"),
        ]
    },
)
