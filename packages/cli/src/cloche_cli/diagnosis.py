"""`abx doctor`: the provider's own probe, told with cause and fix."""

from cloche_cli.exit_status import OK, OTHER
from cloche_cli.invocation import Invocation, current
from cloche_cli.progress import working
from cloche_cli.running import run_async
from cloche_cli.sandboxes import opened
from cloche_contract.provider import ProbeCheck, ProbeReport
from cloche_sdk.providers import Doors


def diagnose(provider: str | None) -> int:
    """Report what the provider can do here; status 0 when it can make sandboxes."""
    invocation = current()
    return run_async(lambda: _diagnose(provider, invocation))


async def _diagnose(provider: str | None, invocation: Invocation) -> int:
    with working("Trying what sandboxes need …", invocation):
        async with opened(Doors(), provider) as opened_provider:
            report = await opened_provider.probe()
    if invocation.json:
        invocation.emit(report.model_dump(mode="json"))
    else:
        _print_report(report, invocation)
    return OK if report.usable else OTHER


def _print_report(report: ProbeReport, invocation: Invocation) -> None:
    from cloche_cli.tables import print_table

    verdict = "can make sandboxes" if report.usable else "cannot make sandboxes"
    invocation.write(f"The provider {report.provider} {verdict}.\n\n")
    for check in report.checks:
        invocation.write(_line(check))
    invocation.write("\n")
    print_table(
        ("RESOURCE", "LIMIT HOLDS", "ENFORCED BY"),
        [(limit.resource, "yes" if limit.enforced else "no", limit.enforced_by or "-") for limit in report.limits],
        empty="No resource can be limited.",
    )
    invocation.write(f"\nabilities: {' '.join(report.capabilities) or 'none'}\n")


def _line(check: ProbeCheck) -> str:
    if check.ok:
        found = f": {check.detail}" if check.detail else ""
        return f"ok       {check.id}{found}\n"
    word = "FAILED" if check.required else "missing"
    lines = [f"{word:<8} {check.id}: {check.detail or _cause_text(check.cause)}"]
    if check.fix:
        lines.append(f"         fix: {check.fix}")
    return "\n".join(lines) + "\n"


def _cause_text(cause: str | None) -> str:
    from cloche_contract.errors import CAUSES

    return next((text for known, (text, _fix) in CAUSES.items() if known == cause), str(cause))
