"""Our entry into a client's file, or out of it: planned first, so that it can be shown, then done."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cloche_cli.clients import config_file
from cloche_cli.clients.config_file import ConfigFile, Unusable
from cloche_cli.clients.edit import Broken, Edited, Format, Unsafe, lines_of
from cloche_cli.clients.entry import NAME
from cloche_cli.clients.formats import editor
from cloche_cli.clients.places import Surroundings, config_path
from cloche_cli.clients.receipt import Receipt, Receipts, digest
from cloche_cli.clients.table import Client, Scope
from cloche_cli.usage import Refused

T = TypeVar("T")


@dataclass(frozen=True)
class Change:
    """A planned change of one file; `after` is None where the file goes away."""

    client: Client
    scope: Scope
    shown: str
    file: ConfigFile
    after: bytes | None
    made: tuple[str, ...] = ()

    @property
    def is_none(self) -> bool:
        return self.after == self.file.data

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (_lines(data) for data in (self.file.data, self.after))
        old, new = (self.shown if data is not None else "/dev/null" for data in (self.file.data, self.after))
        lines = difflib.unified_diff(before, after, old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def plan_install(client: Client, scope: Scope, entry: Mapping[str, Any], around: Surroundings) -> Change:
    """Plan to put the entry in.

    Raises:
        Refused: the file is broken, or the entry cannot go in without touching something else.
    """
    path = config_path(client, scope, around)
    shown = around.shown(path)
    file = _read(path, shown, scope, around)
    form = editor(client.format)
    keys = (*client.path, NAME)
    if file.data is None:
        return Change(client, scope, shown, file, form.new(keys, entry).encode(), client.path)
    text = _text(file.data, shown)
    edited = _edited(shown, lambda: _put(form, text, keys, entry))
    return Change(client, scope, shown, file, edited.text.encode(), edited.made)


def plan_remove(client: Client, scope: Scope, around: Surroundings, receipts: Receipts) -> Change:
    """Plan to take the entry out.

    Raises:
        Refused: as `plan_install`.
    """
    path = config_path(client, scope, around)
    shown = around.shown(path)
    file = _read(path, shown, scope, around)
    if file.data is None:
        return Change(client, scope, shown, file, None)
    form = editor(client.format)
    keys = (*client.path, NAME)
    text = _text(file.data, shown)
    receipt = receipts.load(file.target)
    if receipt is not None and receipt.whole and receipt.written == digest(file.data):
        # Nobody has changed the file since: what was there before is exactly what the backup has.
        backup = receipts.backup(file.target) if receipt.had_file else None
        if not receipt.had_file or (backup is not None and not _has_entry(form, backup, keys)):
            return Change(client, scope, shown, file, backup)
    made = receipt.made if receipt else ()
    return Change(client, scope, shown, file, _edited(shown, lambda: form.take(text, keys, made)).encode())


def installed(client: Client, scope: Scope, around: Surroundings) -> Any:
    """The entry that the client's file has, or None.

    Raises:
        Refused: the file cannot be read.
    """
    path = config_path(client, scope, around)
    shown = around.shown(path)
    file = _read(path, shown, scope, around)
    if file.data is None:
        return None
    text = _text(file.data, shown)
    return _edited(shown, lambda: editor(client.format).find(text, (*client.path, NAME)))


def install(change: Change, receipts: Receipts, *, private: bool) -> None:
    """Do what `plan_install` planned.

    Raises:
        Refused: nothing could be written, neither the backup nor the file.
    """
    assert change.after is not None
    target = change.file.target
    old = receipts.load(target)
    # Over an installation that nobody changed since, its backup stays: it is the file without our entry.
    update = old is not None and change.file.data is not None and old.written == digest(change.file.data)
    had_entry = change.file.data is not None and _has_entry(
        editor(change.client.format), change.file.data, (*change.client.path, NAME)
    )
    receipt = Receipt(
        path=str(target),
        client=change.client.id,
        scope=change.scope,
        made=old.made if update and old else change.made,
        folders=old.folders if update and old else (),
        written=digest(change.after),
        had_file=old.had_file if update and old else change.file.data is not None,
        whole=old.whole if update and old else not had_entry,
    )
    try:
        if not update:
            receipts.keep(target, change.file.data)
        folders = _done(change.shown, lambda: config_file.replace(change.file, change.after or b"", private=private))
        receipts.save(replace(receipt, folders=receipt.folders or tuple(str(folder) for folder in folders)))
    except OSError as error:
        raise Refused(
            "unwritable",
            "cannot be written, and without a backup there nothing is changed.",
            field=str(receipts.folder),
            fix="Give yourself the right to write there, or set XDG_STATE_HOME.",
        ) from error


def uninstall(change: Change, receipts: Receipts) -> None:
    """Do what `plan_remove` planned, and forget the installation.

    Raises:
        Refused: the file cannot be written.
    """
    target = change.file.target
    receipt = receipts.load(target)
    after = change.after
    if change.file.data is not None and not change.is_none:
        if after is None:
            _done(change.shown, lambda: config_file.remove(change.file))
            _remove_folders(receipt)
        else:
            _done(change.shown, lambda: config_file.replace(change.file, after, private=False))
    receipts.drop(target)


def _remove_folders(receipt: Receipt | None) -> None:
    for folder in receipt.folders if receipt else ():
        try:
            Path(folder).rmdir()
        except OSError:
            return  # somebody else's things are in it


def _put(form: Format, text: str, keys: tuple[str, ...], entry: Mapping[str, Any]) -> Edited:
    edited = form.put(text, keys, entry)
    if form.find(edited.text, keys) != entry:
        raise Unsafe("would not read as meant afterwards")
    return edited


def _has_entry(form: Format, data: bytes, keys: tuple[str, ...]) -> bool:
    try:
        return form.find(data.decode(), keys) is not None
    except (Broken, Unsafe, UnicodeDecodeError):
        return False


def _read(path: Path, shown: str, scope: Scope, around: Surroundings) -> ConfigFile:
    return _done(shown, lambda: config_file.read(path, scope, around.workdir))


def _done(shown: str, step: Callable[[], T]) -> T:
    try:
        return step()
    except Unusable as error:
        raise Refused(error.rule, error.what, field=shown, fix=error.fix) from error


def _edited(shown: str, step: Callable[[], T]) -> T:
    try:
        return step()
    except Broken as error:
        raise Refused(
            "broken",
            f"is not {error.kind}: line {error.line} {error.what}. It is left as it is.",
            field=shown,
            fix="Correct that line, or add the entry that `abx mcp install … --print` shows by hand.",
        ) from error
    except Unsafe as error:
        raise Refused(
            "unsafe",
            f"{error.what}{'' if error.line is None else f' (line {error.line})'}. It is left as it is.",
            field=shown,
            fix="Add the entry that `abx mcp install … --print` shows by hand.",
        ) from error


def _text(data: bytes, shown: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        raise Refused(
            "encoding",
            f"is not UTF-8: line {line} has other bytes. It is left as it is.",
            field=shown,
            fix="Save it as UTF-8, which is what its client reads.",
        ) from error


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else lines_of(data.decode("utf-8", "replace"))
