"""Set and remove one line of ~/.abx/.env; every other line stays as it is."""

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@,*+-]+")


def with_variable(text: str, name: str, value: str | None) -> str:
    """The text with NAME=value in the place of the line that has it now, or at the end; without it where value is None.

    The reader takes one pair of quotes away and expands nothing, so that a quote needs no escape.
    """
    line = re.compile(rf"[ \t]*(?:export[ \t]+)?{re.escape(name)}[ \t]*=")
    kept = [(bool(line.match(one)), one) for one in re.split(r"(?<=\n)", text) if one]
    if value is None:
        return "".join(one for is_ours, one in kept if not is_ours)
    quoted = value if _PLAIN.fullmatch(value) else f'"{value}"'
    written = f"{name}={quoted}\n"
    if not any(is_ours for is_ours, _one in kept):
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{written}"
    # The last line of a name is the one that counts; one is enough.
    last = max(number for number, (is_ours, _one) in enumerate(kept) if is_ours)
    lines = [written if number == last else "" if is_ours else one for number, (is_ours, one) in enumerate(kept)]
    return "".join(lines)
