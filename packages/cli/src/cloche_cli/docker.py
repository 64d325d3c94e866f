"""`abx docker`: what the manager of Docker sandboxes finds and removes, told to a person or as JSON."""

import os
from dataclasses import asdict
from importlib.util import find_spec

from cloche_cli.escaped import escaped
from cloche_cli.exit_status import OK, OTHER
from cloche_cli.invocation import current
from cloche_cli.sizes import shown_size
from cloche_contract.errors import BackendUnavailable


def diagnose_docker() -> int:
    """Report what sandboxes in a Docker Engine need; status 0 when they can be made."""
    require_manager()
    from cloche_docker_manager.doctor import diagnose

    checks = diagnose(os.environ)
    usable = all(check.ok for check in checks)
    invocation = current()
    if invocation.json:
        invocation.emit({"usable": usable, "checks": [asdict(check) for check in checks]})
        return OK if usable else OTHER
    for check in checks:
        invocation.write(f"{'ok' if check.ok else 'FAILED':<8} {check.id}: {escaped(check.detail)}\n")
        if check.fix:
            invocation.write(f"         fix: {check.fix}\n")
    return OK if usable else OTHER


def prune_docker(*, dry_run: bool) -> int:
    """Remove what nobody uses, or tell it."""
    require_manager()
    from cloche_docker_manager.prune import prune

    found = prune(os.environ, dry_run=dry_run)
    invocation = current()
    if invocation.json:
        invocation.emit({"dry_run": dry_run, "removed": [asdict(one) for one in found]})
        return OK
    verb = "would remove" if dry_run else "removed"
    for one in found:
        size = shown_size(one.size) if one.size else "-"
        invocation.write(f"{verb}  {one.kind:<9}  {size:>8}  {escaped(one.name)}\n")
    if not found:
        invocation.write("Nothing is left to remove.\n")
    return OK


def require_manager() -> None:
    """Say what to install where the Docker manager is missing.

    Raises:
        BackendUnavailable: it is missing.
    """
    if find_spec("cloche_docker_manager") is None:
        raise BackendUnavailable(cause="docker_manager_missing")
