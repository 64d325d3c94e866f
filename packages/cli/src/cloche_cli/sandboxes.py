"""`abx sandbox`: what its commands do, over the SDK."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from cloche_cli.invocation import Invocation, current
from cloche_cli.running import run_async
from cloche_contract.provider import InspectRequest, InspectResult, SandboxProvider, UpdateNetworkRequest
from cloche_sdk import AsyncSandbox
from cloche_sdk.providers import Doors, ProviderPool
from cloche_sdk.requests import build


@dataclass(frozen=True)
class CreateOptions:
    """What to make. None leaves the choice to the provider or the configuration."""

    timeout_s: int
    template: str | None = None
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cpu: int | None = None
    memory_mb: int | None = None
    egress: Sequence[str] | None = None
    listen: bool = False
    region: str | None = None
    provider: str | None = None


def create_sandbox(options: CreateOptions) -> int:
    """Make a sandbox that outlives this process, and tell its id."""
    invocation = current()
    return run_async(lambda: _create(options, invocation))


def show_sandbox(sandbox_id: str) -> int:
    """Show the current metadata of one sandbox."""
    invocation = current()
    return run_async(lambda: _show(sandbox_id, invocation))


def set_timeout(sandbox_id: str, seconds: int) -> int:
    """Set the lifetime of one sandbox from now, and tell when it ends."""
    invocation = current()
    return run_async(lambda: _set_timeout(sandbox_id, seconds, invocation))


def inspect_sandbox(sandbox_id: str) -> int:
    """Show mounts, users and limits of one sandbox."""
    invocation = current()
    return run_async(lambda: _inspect(sandbox_id, invocation))


def show_endpoint(sandbox_id: str) -> int:
    """Show address and token of one sandbox, for other clients."""
    invocation = current()
    return run_async(lambda: _show_endpoint(sandbox_id, invocation))


def update_network(sandbox_id: str, allow: Sequence[str], remove: Sequence[str]) -> int:
    """Change what one sandbox may reach, and show the rules in force."""
    invocation = current()
    return run_async(lambda: _update_network(sandbox_id, allow, remove, invocation))


async def _create(options: CreateOptions, invocation: Invocation) -> int:
    doors = Doors()
    sandbox = await AsyncSandbox.create(
        options.template,
        timeout=options.timeout_s,
        envs=options.envs or None,
        region=options.region,
        cpu=options.cpu,
        memory=options.memory_mb,
        egress=options.egress,
        listen=options.listen,
        provider=options.provider,
        doors=doors,
    )
    try:
        name = usable_id(doors, sandbox.provider, sandbox.sandbox_id)
        if invocation.json:
            invocation.emit({"sandbox_id": name, "status": sandbox.info.status, "url": sandbox.url})
        else:
            invocation.write(name + "\n")
            if options.listen:
                invocation.note(f"listening on {sandbox.url}; `abx sandbox endpoint {name}` tells the token")
    finally:
        await sandbox.close()
    return 0


async def _show(sandbox_id: str, invocation: Invocation) -> int:
    document = (await AsyncSandbox.get_info_by_id(sandbox_id)).model_dump(mode="json")
    if invocation.json:
        invocation.emit(document)
    else:
        invocation.write("".join(f"{name:<14} {_shown(value)}\n" for name, value in document.items()))
    return 0


async def _set_timeout(sandbox_id: str, seconds: int, invocation: Invocation) -> int:
    await AsyncSandbox.set_timeout_by_id(sandbox_id, seconds)
    if invocation.json:
        invocation.emit({"sandbox_id": sandbox_id, "timeout": seconds})
    else:
        invocation.write(f"{sandbox_id} lives for {seconds} s from now\n")
    return 0


async def _show_endpoint(sandbox_id: str, invocation: Invocation) -> int:
    sandbox = await AsyncSandbox.connect(sandbox_id)
    try:
        found = await sandbox.endpoint()
    finally:
        await sandbox.close()
    document = asdict(found)
    if invocation.json:
        invocation.emit(document)
    else:
        invocation.write("".join(f"{name:<14} {_shown(value)}\n" for name, value in document.items()))
    return 0


async def _inspect(sandbox_id: str, invocation: Invocation) -> int:
    doors = Doors()
    reference = doors.reference(sandbox_id)
    async with opened(doors, reference.provider) as provider:
        result = await provider.inspect(InspectRequest(sandbox_id=reference.sandbox_id))
    if invocation.json:
        invocation.emit(result.model_dump(mode="json"))
    else:
        _print_inspection(result, invocation)
    return 0


async def _update_network(sandbox_id: str, allow: Sequence[str], remove: Sequence[str], invocation: Invocation) -> int:
    doors = Doors()
    reference = doors.reference(sandbox_id)
    request = build(UpdateNetworkRequest, sandbox_id=reference.sandbox_id, allow=list(allow), remove=list(remove))
    async with opened(doors, reference.provider) as provider:
        rules = (await provider.update_network(request)).rules
    if invocation.json:
        invocation.emit({"sandbox_id": sandbox_id, "rules": rules})
    else:
        invocation.write("".join(f"{rule}\n" for rule in rules))
        if not rules:
            invocation.note("The allowlist is empty: the sandbox reaches nothing.")
    return 0


def usable_id(doors: Doors, provider: str, sandbox_id: str) -> str:
    """The id as the next command takes it: with its provider, unless that is the default one."""
    return sandbox_id if provider == doors.default_provider else f"{provider}:{sandbox_id}"


@asynccontextmanager
async def opened(doors: Doors, name: str | None) -> AsyncGenerator[SandboxProvider]:
    """Open a provider for one command."""
    pool = ProviderPool(doors)
    try:
        yield await pool.get(doors.provider(name))
    finally:
        await pool.aclose()


def _print_inspection(result: InspectResult, invocation: Invocation) -> None:
    from cloche_cli.tables import print_table

    facts: dict[str, Any] = {
        "sandbox": result.sandbox_id,
        "users": result.users,
        "namespaces": " ".join(result.namespaces) or "none",
        "network": result.network,
        **result.facts,
    }
    invocation.write("".join(f"{name:<14} {value}\n" for name, value in facts.items()) + "\n")
    print_table(
        ("RESOURCE", "LIMIT", "ENFORCED BY"),
        [(limit.resource, _shown(limit.value), limit.enforced_by or "nothing") for limit in result.limits],
        empty="No limits.",
    )
    invocation.write("\n")
    print_table(
        ("TARGET", "KIND", "ACCESS", "SOURCE"),
        [
            (mount.target, mount.kind, "read-only" if mount.read_only else "writable", mount.source or "-")
            for mount in result.mounts
        ],
        empty="No mounts of its own.",
    )


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
