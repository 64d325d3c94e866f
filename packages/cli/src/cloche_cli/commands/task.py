"""`abx task`: background tasks of a sandbox."""

import click

from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import Text, Variable, WholeNumber


def _start(
    sandbox_id: str, words: tuple[str, ...], cwd: str | None, env: tuple[tuple[str, str], ...], timeout: int
) -> int:
    from cloche_cli.one_shot import shell_line
    from cloche_cli.tasking import StartRequest, start_task

    return start_task(
        StartRequest(sandbox_id=sandbox_id, command=shell_line(words), timeout_s=timeout, cwd=cwd, envs=dict(env))
    )


def _list(sandbox_id: str) -> int:
    from cloche_cli.tasking import list_tasks

    return list_tasks(sandbox_id)


def _logs(sandbox_id: str, task_id: str, follow: bool) -> int:
    from cloche_cli.tasking import show_task

    return show_task(sandbox_id, task_id, follow=follow)


def _cancel(sandbox_id: str, task_id: str) -> int:
    from cloche_cli.tasking import cancel_task

    return cancel_task(sandbox_id, task_id)


def _id() -> click.Argument:
    return click.Argument(["sandbox_id"], type=Text(1024), metavar="ID")


def _task() -> click.Argument:
    return click.Argument(["task_id"], type=Text(128), metavar="TASK")


start = command(
    "start",
    _start,
    help=(
        "Start COMMAND with `sh -c` in a sandbox, print the id of the task, and end. It runs until it ends, is "
        "cancelled, or for --timeout seconds; the end of the sandbox ends it too.\n\n"
        "One word is taken as a line for the shell; several words are quoted so that each arrives as it is. Options "
        "of the command stand behind --."
    ),
    examples=[
        "abx task start sb-7f3a -- make -j4 test",
        "abx task start sb-7f3a --timeout 3600 'python3 train.py > train.log'",
    ],
    params=[
        _id(),
        click.Argument(["words"], nargs=-1, required=True, metavar="[--] COMMAND..."),
        click.Option(["--cwd"], type=Text(4096), help="Folder to run in. Default: the template's."),
        click.Option(["-e", "--env"], type=Variable(), multiple=True, help="A variable for the command; repeatable."),
        click.Option(
            ["--timeout"], type=WholeNumber(1, 86400), default=300, show_default=True, help="Seconds that it may run."
        ),
    ],
)

list_ = command(
    "list",
    _list,
    help="List the tasks that a sandbox still knows, the oldest first.",
    examples=["abx task list sb-7f3a", "abx --json task list sb-7f3a"],
    params=[_id()],
)

logs = command(
    "logs",
    _logs,
    help=(
        "Write what a task printed so far to stdout and stderr, and its state to stderr. With --follow until it ends, "
        "with its exit status (5 if its timeout ended it). Of long streams the beginning and the end are kept."
    ),
    examples=["abx task logs sb-7f3a TASK", "abx task logs sb-7f3a TASK --follow"],
    params=[
        _id(),
        _task(),
        click.Option(["-f", "--follow"], is_flag=True, help="Go on until the task ends. Ctrl+C leaves it running."),
    ],
)

cancel = command(
    "cancel",
    _cancel,
    help="End a task and everything that it started, first by SIGTERM and then by SIGKILL.",
    examples=["abx task cancel sb-7f3a TASK"],
    params=[_id(), _task()],
)

task: click.Group = LazyGroup(
    "task",
    help="Run commands in a sandbox that go on when you leave.",
    examples=[
        "task=$(abx task start sb-7f3a -- make test)",
        "abx task logs sb-7f3a $task --follow",
        "abx task list sb-7f3a",
    ],
    lazy={
        name: f"cloche_cli.commands.task:{attribute}"
        for name, attribute in [("start", "start"), ("list", "list_"), ("logs", "logs"), ("cancel", "cancel")]
    },
)
