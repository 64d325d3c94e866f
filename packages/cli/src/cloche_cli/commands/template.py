"""`abx template`: root file systems of your own for local sandboxes."""

import click

from cloche_cli.lazy import LazyGroup, command
from cloche_cli.parameters import Text


def _list() -> int:
    from cloche_cli.templating import list_templates

    return list_templates()


def _import(source: str, name: str | None) -> int:
    from cloche_cli.templating import import_template

    return import_template(source, name)


def _remove(names: tuple[str, ...]) -> int:
    from cloche_cli.templating import remove_templates

    return remove_templates(names)


list_ = command(
    "list",
    _list,
    help="List the templates of the local provider: those that it has, and those that were imported.",
    examples=["abx template list", "abx --json template list"],
)

import_ = command(
    "import",
    _import,
    help=(
        "Import a root file system, so that sandboxes can be made of it: a folder that holds one, or an image in the "
        "OCI layout, as a folder or as the file that `docker save` and `skopeo copy` write. It is copied once, below "
        "the state folder of the local provider.\n\n"
        "Nothing in it is trusted: names that lead out of it are refused, devices are left out, and no file keeps a "
        "set-id bit. Blobs of an image are compared with their digests."
    ),
    examples=[
        "abx template import ./rootfs --name mine",
        "docker save alpine:3 -o alpine.tar && abx template import alpine.tar",
        "abx sandbox create --template alpine",
    ],
    params=[
        click.Argument(["source"], type=Text(4096), metavar="SOURCE"),
        click.Option(["-n", "--name"], type=Text(63), help="Name of the template. Default: that of the source."),
    ],
)

remove = command(
    "remove",
    _remove,
    help="Remove imported templates. One that a sandbox stands on is in use, and stays.",
    examples=["abx template remove mine"],
    params=[click.Argument(["names"], type=Text(63), nargs=-1, required=True, metavar="NAME...")],
)

template: click.Group = LazyGroup(
    "template",
    help="Import root file systems of your own, for local sandboxes.",
    examples=["abx template list", "abx template import ./rootfs --name mine", "abx template remove mine"],
    lazy={
        "list": "cloche_cli.commands.template:list_",
        "import": "cloche_cli.commands.template:import_",
        "remove": "cloche_cli.commands.template:remove",
    },
)
