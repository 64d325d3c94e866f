"""Names that user code chose, as a terminal may show them: nothing in them moves the cursor or reorders a line."""

import base64


def escaped(text: str, raw_base64: str | None = None) -> str:
    """The name with everything that is not printable written as an escape; a backslash is doubled.

    Args:
        raw_base64: its bytes, where they are not UTF-8.
    """
    if raw_base64 is not None:
        text = base64.b64decode(raw_base64).decode(errors="surrogateescape")
    return "".join(_character(character) for character in text)


def _character(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode()
