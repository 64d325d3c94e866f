"""Files in parts where the agent of a platform takes whole ones only: its parts are put together by a script.

A part arrives over the agent's own route, is appended to what came before it, and with the last one the file is
replaced by a rename, as a whole. Every answer hashes all that is there, so that many parts cost more than few.

Source: systems facts 1.4; faults F10, F24.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from cloche_contract.agent import ROUTE_WRITE_FILE
from cloche_contract.errors import (
    ClocheError,
    DiskFull,
    FileIsDirectory,
    FileNotDirectory,
    FilePermissionDenied,
    FileSpecial,
    ProviderFailed,
    TransferConflict,
    TransferNotFound,
    UnsupportedOperation,
)

from .data_plane import AgentChannel
from .scripts import run_script

__all__ = ["Part", "upload_part"]

SCRIPT_BOUND_S = 120
ANSWER_BYTES = 4096
ENDED_BODY_BYTES = 65_536
FOLDER = ".cloche-uploads"

_BYTES = {"content-type": "application/octet-stream"}
_REFUSALS: Mapping[str, Callable[[], ClocheError]] = {
    "missing": TransferNotFound,
    "directory": FileIsDirectory,
    "special": FileSpecial,
    "denied": FilePermissionDenied,
    "parent": FileNotDirectory,
    "full": DiskFull,
    "unable": lambda: UnsupportedOperation(capability="transfers"),
}

# Arguments: transfer, path, offset, whether it is the last part, mode or nothing. The part lies beside the transfer.
_APPEND = r"""
umask 077
LC_ALL=C
export LC_ALL
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${PATH-}
root=${HOME:-/tmp}/.cloche-uploads
at=$root/$1 part=$root/$1.part target=$2
drop() { rm -f "$at" "$at.part" "$at.path"; }
refuse() { rm -f "$part"; echo "$@"; exit 0; }
give_up() { drop; echo "$@"; exit 0; }
# Why a program failed, by what it said.
why() {
  case $1 in
    *ermission*|*ead-only*|*not\ permitted*) give_up denied ;;
    *"o space"*|*uota*) give_up full ;;
    *"ot a directory"*|*"ile exists"*) give_up parent ;;
    *) give_up failed ;;
  esac
}
find "$root" -type f -mmin +10 -exec rm -f {} + 2>/dev/null
command -v sha256sum > /dev/null || give_up unable
[ -f "$part" ] || refuse failed
if [ ! -f "$at" ]; then
  [ "$3" -eq 0 ] || refuse missing
  said=$({ : > "$at" && printf %s "$2" > "$at.path"; } 2>&1) || why "$said"
fi
size=$(wc -c < "$at")
[ "$size" -eq "$3" ] && [ "$(cat "$at.path")" = "$2" ] || refuse conflict "$size"
said=$(cat "$part" 2>&1 >> "$at") || why "$said"
rm -f "$part"
size=$(wc -c < "$at")
digest=$(sha256sum < "$at")
if [ "$4" = 1 ]; then
  [ ! -L "$target" ] || target=$(readlink -f "$target")
  [ ! -d "$target" ] || give_up directory
  [ ! -e "$target" ] || [ -f "$target" ] || give_up special
  [ ! -e "$target" ] || [ -w "$target" ] || give_up denied
  folder=$(dirname "$target")
  said=$( (umask 022; mkdir -p "$folder") 2>&1) || why "$said"
  mode=$5
  [ -n "$mode" ] || [ ! -e "$target" ] || mode=$(stat -c %a "$target")
  new=$folder/.cloche-upload-$1
  said=$({ cat "$at" > "$new" && chmod "${mode:-644}" "$new" && mv -f "$new" "$target"; } 2>&1) || {
    rm -f "$new"
    why "$said"
  }
  drop
fi
echo done "$size" "${digest%% *}"
"""


@dataclass(frozen=True)
class Part:
    """One part of a file, and where it belongs."""

    transfer_id: str
    path: str
    offset: int
    last: bool
    mode: str | None
    data: bytes = field(repr=False)


async def upload_part(channel: AgentChannel, part: Part) -> Mapping[str, object]:
    """Append a part; the last one replaces the file. Returns size, sha256 and complete, as our own agent does.

    Raises:
        TransferNotFound, TransferConflict: the part does not follow what is there.
        FileIsDirectory, FileNotDirectory, FilePermissionDenied, FileSpecial, DiskFull: it cannot be written.
        UnsupportedOperation: the sandbox has no program that computes the hash.
    """
    place = quote(f"{FOLDER}/{part.transfer_id}.part", safe="/")
    async with channel.send("POST", f"{ROUTE_WRITE_FILE}?path={place}", content=part.data, headers=_BYTES) as reply:
        await reply.read(ENDED_BODY_BYTES)
    arguments = [part.transfer_id, part.path, str(part.offset), str(int(part.last)), part.mode or ""]
    found = await run_script(channel, _APPEND, arguments, within_s=SCRIPT_BOUND_S, limit_bytes=ANSWER_BYTES)
    word, *rest = found.stdout.decode("ascii", "replace").split()[:3] or ["failed"]
    if word == "done" and len(rest) == 2 and rest[0].isdigit():
        return {"size": int(rest[0]), "sha256": rest[1], "complete": part.last}
    if word == "conflict" and rest and rest[0].isdigit():
        raise TransferConflict(offset=int(rest[0]))
    refusal = _REFUSALS.get(word, ProviderFailed)()
    raise refusal
