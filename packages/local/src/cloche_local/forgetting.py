"""Wiping a secret out of the memory of a fork: every copy of it, whatever object or freed buffer it is in."""

from cloche_local import syscalls as sys_

_WRITABLE = b"rw-p"


def forget(secret: str) -> None:
    """Overwrite every copy of `secret` in this process's writable memory, its argument included.

    For a fork that goes on without it. Copies are found by their bytes: text that Python stores by one byte a
    character, which a token is.

    Raises:
        OSError: /proc of this process cannot be read.
    """
    import ctypes

    wanted = secret.encode()
    if not wanted:
        return
    libc = sys_.load()
    find = libc.memmem
    find.restype = ctypes.c_void_p
    find.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    # All are found before any is overwritten: one of them is what is looked for.
    found: list[int] = []
    for first, last in _writable_ranges():
        while first < last and (place := find(first, last - first, wanted, len(wanted))):
            found.append(place)
            first = place + len(wanted)
    for place in found:
        ctypes.memset(place, 0, len(wanted))


def _writable_ranges() -> list[tuple[int, int]]:
    # By bytes: a text file may load an encoding, and nothing is loaded once the root is switched.
    with open("/proc/self/maps", "rb") as maps:
        lines = [line.split(maxsplit=2)[:2] for line in maps]
    spans = [span.split(b"-") for span, kind in lines if kind == _WRITABLE]
    return [(int(first, 16), int(last, 16)) for first, last in spans]
