"""`abx provider`: which providers are installed, and what one can do here."""

from importlib import metadata

from cloche_cli.invocation import current
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened
from cloche_cli.usage import Refused
from cloche_contract.kernel.plugins import PROVIDERS
from cloche_sdk.providers import Doors


def list_providers() -> int:
    """Tell the installed providers, and the one that is used where none is named."""
    from cloche_cli.tables import print_table

    doors = Doors()
    entries = [
        {"name": name, "default": name == doors.default_provider, "distribution": _distribution(name)}
        for name in sorted(doors.providers())
    ]
    invocation = current()
    if invocation.json:
        invocation.emit({"providers": entries})
        return 0
    rows = [(str(one["name"]), "yes" if one["default"] else "", str(one["distribution"])) for one in entries]
    print_table(("PROVIDER", "DEFAULT", "FROM"), rows, empty="No provider is installed.")
    if not any(one["default"] for one in entries):
        invocation.note(f"note: the default, {doors.default_provider}, is not installed.")
    return 0


def show_provider(name: str) -> int:
    """Tell what a provider can do here: abilities and the limits that hold.

    Raises:
        Refused: it is not installed.
    """
    doors = Doors()
    if name not in doors.providers():
        fix = f"Name one of: {', '.join(sorted(doors.providers()))}."
        raise Refused("not_found", "must be the name of an installed provider.", field="NAME", fix=fix)
    return run_async(lambda: _show(doors, name))


async def _show(doors: Doors, name: str) -> int:
    from cloche_cli.tables import print_table

    async with opened(doors, name) as provider:
        report = await provider.probe()
    invocation = current()
    if invocation.json:
        document = report.model_dump(mode="json", include={"provider", "usable", "capabilities", "limits", "emulated"})
        invocation.emit({**document, "distribution": _distribution(name), "default": name == doors.default_provider})
        return 0
    invocation.write(f"{name}, from {_distribution(name)}\n")
    invocation.write(f"{'can' if report.usable else 'cannot'} make sandboxes here\n")
    invocation.write(f"abilities: {' '.join(report.capabilities) or 'none'}\n\n")
    print_table(
        ("RESOURCE", "LIMIT HOLDS", "ENFORCED BY"),
        [(limit.resource, "yes" if limit.enforced else "no", limit.enforced_by or "-") for limit in report.limits],
        empty="No resource can be limited.",
    )
    for ability in report.emulated:
        invocation.write(f"\n{ability.capability}: emulated where the sandbox's agent has none\n")
        for sentence in ability.limits:
            invocation.write(f"  - {sentence}\n")
    if not report.usable:
        invocation.note(f"fix: `abx provider doctor {name}` says what is missing.")
    return 0


def _distribution(name: str) -> str:
    found = [entry.dist for entry in metadata.entry_points(group=PROVIDERS, name=name)]
    return next((f"{dist.name} {dist.version}" for dist in found if dist is not None), "-")
