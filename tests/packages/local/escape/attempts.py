"""Attacks on a sandbox, as code that runs inside it, in plain Docker, in bubblewrap, or anywhere else.

Each prints OPEN where it works, HELD where it does not, and ABSENT where this kernel has no such thing. `layers` are
the protections that stop it: with any one of them in place it is held, with all of them out it works. A layer that
stops nothing would show here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# The attack runs in a child: it may die of a refused call, and leaves the interpreter as it was. PARENT is what a
# program in the sandbox was started by: init.
_PRELUDE = """
import ctypes, errno, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = os.uname().machine == "aarch64"
PARENT = os.getppid()
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return result, ctypes.get_errno() if result < 0 else 0
def verdict(worked, absent=False):
    os.write(1, b"OPEN" if worked else b"ABSENT" if absent else b"HELD")
def can_open(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags))
        return True
    except OSError:
        return False
def entries(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []
child = os.fork()
if child == 0:
    try:
        exec({code!r}, globals())
    except BaseException as error:
        os.write(1, repr(error).encode())
    finally:
        os._exit(0)
died = os.waitpid(child, 0)[1]
if os.WIFSIGNALED(died):
    # The filter ends whoever makes a call by another convention.
    os.write(1, b"HELD" if os.WTERMSIG(died) == signal.SIGSYS else b"died of signal %d" % os.WTERMSIG(died))
"""


@dataclass(frozen=True)
class Attempt:
    """One attack."""

    name: str
    code: str
    layers: tuple[str, ...]
    """Protections that stop it when the host's user is an ordinary one."""
    root_layers: tuple[str, ...] | None = None
    """The same for a root host; None where they are equal."""
    facts: tuple[str, ...] = field(default=())
    """What the test must prepare on the host; `{name}` in the code is replaced."""

    def program(self, facts: dict[str, str]) -> str:
        """The code with its facts filled in."""
        code = self.code
        for name, value in facts.items():
            code = code.replace("{" + name + "}", value)
        return _PRELUDE.replace("{code!r}", repr(code))

    def layers_for(self, *, host_root: bool) -> tuple[str, ...]:
        """The protections that stop it on this host."""
        return self.layers if self.root_layers is None or not host_root else self.root_layers


RIGHTS = ("drop_capabilities", "seccomp")
# A root host enters the user namespace last, so that even full capabilities in it reach no mount and no host name.
ROOT_RIGHTS = ("drop_capabilities", "seccomp", "user_namespace")
# The kernel itself refuses it to whoever is not root of the host.
HOST_ROOT_ONLY = ()
