"""`abx template`: the templates of the local provider, its own and those that were imported."""

import os
import re
import signal
import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from cloche_cli.exit_status import OK
from cloche_cli.invocation import Invocation, current
from cloche_cli.sizes import shown_size, shown_span
from cloche_cli.tables import print_table
from cloche_cli.usage import Refused
from cloche_sdk import load_settings

if TYPE_CHECKING:
    from cloche_local.imported import Imported
    from cloche_local.state import StateFolder

_SIGNALS = [signal.SIGTERM] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGHUP]


class _Ended(BaseException):
    """A signal that ends this process, as an exception: what was begun is removed on the way."""


def list_templates() -> int:
    """Show every template of the local provider."""
    state = _state()
    from cloche_local import imported, templates

    found = list(imported.every(state.path))
    invocation = current()
    if invocation.json:
        invocation.emit(
            {
                "templates": [
                    *({"name": name, "kind": "built-in"} for name in templates.TEMPLATES),
                    *map(_document, found),
                ]
            }
        )
        return OK
    rows = [[name, "built-in", "-", "-", ""] for name in templates.TEMPLATES]
    rows += [[one.name, one.kind, shown_size(one.size), _age(one), _remark(one)] for one in found]
    print_table(["NAME", "KIND", "SIZE", "IMPORTED", ""], rows, empty="There is no template.")
    return OK


def import_template(source: str, name: str | None) -> int:
    """Import a root file system.

    Raises:
        Refused: the name or the source cannot be used.
    """
    state = _state()
    from cloche_local import imported, templates, tree

    wanted = _name_of(source) if name is None else name
    if not imported.NAME.fullmatch(wanted) or wanted in templates.TEMPLATES:
        raise Refused(
            "pattern",
            "must be 1 to 63 lower-case letters, digits, dots, hyphens and _, and not the name of a built-in one.",
            field="--name",
        )
    if not os.path.exists(source):
        raise Refused("not_found", "names a folder or a file that does not exist.", field="SOURCE")
    invocation = current()
    try:
        with _ended_by_signals(), _spinner(invocation):
            found = imported.import_template(state, wanted, source, owners=imported.is_host_root(), now=time.time())
    except imported.NameTaken as error:
        raise Refused("taken", f"is the name of a template: abx template remove {wanted}", field="--name") from error
    except tree.TreeRefused as error:
        raise Refused("root", f"cannot be a template: {error}.", field="SOURCE") from error
    except OSError as error:
        sentence = "cannot be read, or there is no room for it."
        raise Refused("readable", sentence, field="SOURCE") from error
    except _Ended as ended:
        return 128 + int(ended.args[0])
    _tell(invocation, found)
    return OK


def remove_templates(names: tuple[str, ...]) -> int:
    """Remove imported templates.

    Raises:
        Refused: one is not there, or in use.
    """
    state = _state()
    from cloche_local import imported

    removed: list[str] = []
    invocation = current()
    for name in names:
        try:
            imported.remove_template(state, name)
        except imported.NotThere as error:
            raise Refused("not_found", "must be an imported template: abx template list", field="NAME") from error
        except imported.InUse as error:
            sentence = "is in use, by a sandbox or by a process that made one: abx sandbox list"
            raise Refused("in_use", sentence, field="NAME") from error
        except OSError as error:
            raise Refused("writable", "cannot be removed: something of it is not yours.", field="NAME") from error
        removed.append(name)
        if not invocation.json:
            invocation.write(f"removed {name}\n")
    if invocation.json:
        invocation.emit({"removed": removed})
    return OK


def _state() -> "StateFolder":
    if find_spec("cloche_local") is None:
        raise Refused("local", "are of the local provider, which needs Python 3.11.", field="Templates")
    from cloche_local.imported import state_of

    return state_of(load_settings().values, os.environ)


def _name_of(source: str) -> str:
    """What the source is called, without what tells its form."""
    name = Path(source).resolve().name.lower()
    return re.sub(r"[^a-z0-9._-]+", "-", re.sub(r"(\.oci)?\.tar$", "", name)).strip("-._")


def _tell(invocation: Invocation, found: "Imported") -> None:
    if invocation.json:
        invocation.emit(_document(found))
        return
    invocation.write(f"{found.name}\n")
    invocation.note(f"{found.entries} entries, {shown_size(found.size)}")
    if found.skipped:
        invocation.note(f"{found.skipped} devices, pipes and sockets were left out.")
    if not found.has_shell:
        invocation.note("It has no /bin/sh: code runs in it, commands do not.")


def _document(one: "Imported") -> dict[str, object]:
    return {
        "name": one.name,
        "kind": one.kind,
        "digest": one.digest or None,
        "imported_at": one.imported_at,
        "size": one.size,
        "entries": one.entries,
        "skipped": one.skipped,
        "has_shell": one.has_shell,
        "workdir": one.workdir or None,
    }


def _age(one: "Imported") -> str:
    return f"{shown_span(time.time() - one.imported_at)} ago"


def _remark(one: "Imported") -> str:
    return "" if one.has_shell else "no /bin/sh"


@contextmanager
def _ended_by_signals() -> Generator[None, None, None]:
    def end(number: int, _frame: FrameType | None) -> None:
        raise _Ended(number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _spinner(invocation: Invocation) -> AbstractContextManager[object]:
    if invocation.json or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("Importing")
