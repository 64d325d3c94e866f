"""What the host half tells the guest half about one sandbox: plain data, standard library only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Protections:
    """The named protections of a sandbox. All are on; a test takes out one to prove that it bites.

    Built in-process only: no setting, no file and no message of a client reaches it.
    """

    user_namespace: bool = True
    pid_namespace: bool = True
    net_namespace: bool = True
    ipc_namespace: bool = True
    root_switch: bool = True
    read_only_system: bool = True
    sealed_proc: bool = True
    drop_capabilities: bool = True
    no_new_privileges: bool = True
    seccomp: bool = True
    nested_namespaces_refused: bool = True
    non_dumpable: bool = True
    close_descriptors: bool = True
    process_limit: bool = True
    process_memory_limit: bool = True
    open_files_limit: bool = True
    kernel_counts_bounded: bool = True
    killed_first: bool = True
    disk_limit: bool = True
    parent_death_signal: bool = True
    backstop_timer: bool = True
    empty_environment: bool = True
    own_keyring: bool = True
    token_forgotten: bool = True
    acts_as_user: bool = True
    minimal_devices: bool = True
    set_id_ignored: bool = True
    egress_policy: bool = True
    egress_state_hidden: bool = True
    egress_own_id: bool = True
    egress_self_test: bool = True


@dataclass(frozen=True, slots=True)
class Bind:
    """A host folder or file shown read-only inside, at `target`."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class RootPlan:
    """The guest's root: an overlay over `skeleton`, with `binds` on top."""

    skeleton: str
    binds: tuple[Bind, ...]
    search_path: str
    import_paths: tuple[str, ...] = ()
    workdir: str = ""
    """Where commands start that name no place; empty: the user's home."""


# The agent's own: keeper, init, the spawner of root, and room for the interpreters that it keeps ready.
OWN_PROCESSES = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What the sandbox may use. None: no limit was asked and none holds."""

    pids: int
    disk_mb: int
    open_files: int = 16384
    process_mb: int | None = None
    """Data of each process; a guard against one that asks for all there is, and no limit on the sandbox."""
    memory_mb: int | None = None
    cpus: int | None = None

    @property
    def need_group(self) -> bool:
        """Whether a control group must hold one of them."""
        return self.memory_mb is not None or self.cpus is not None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a sandbox is built of, before a request decides the rest. Nothing in it is secret: init knows all of it."""

    root: RootPlan
    limits: Limits
    protections: Protections = Protections()

    @property
    def may_wait(self) -> bool:
        """Whether a sandbox of this shape may be built in advance: no protection is out, no group is named after it."""
        return self.protections == Protections() and not self.limits.need_group


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One sandbox, as its keeper needs it: what its request decides, on top of its shape.

    `folder` is its state folder; its socket is `socket_name` in `runtime_folder`.
    """

    sandbox_id: str
    template: str
    folder: str
    runtime_folder: str
    socket_name: str
    timeout_s: int
    access_token: str = field(repr=False)
    shape: Shape
    envs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    range_slots: str = ""
    """Folder of id range slots; empty for an ordinary user, who has one id."""
    cgroup_root: str = ""
    egress: tuple[str, ...] | None = None
    """Rules of the network allowlist, read and written back; None: the sandbox has no network and no proxy."""
    idempotency: str = ""
    """Hash of the creator's key and arguments; empty without a key."""
    ends_with_pid: int = 0
    """The process that the sandbox ends with; 0: its deadline alone ends it."""
    port: int | None = None
    """The port of the listener that comes with the spec; None: there is none."""

    def encode(self) -> bytes:
        """The spec as JSON, without its shape: the keeper has that already."""
        names = (entry.name for entry in fields(self) if entry.name != "shape")
        return json.dumps({name: getattr(self, name) for name in names}, default=dict).encode()


def decode_spec(raw: bytes, shape: Shape) -> SandboxSpec:
    """Read what `SandboxSpec.encode` wrote."""
    told = cast("dict[str, Any]", json.loads(raw))
    egress = told.pop("egress")
    return SandboxSpec(shape=shape, egress=None if egress is None else tuple(egress), **told)


def decode_shape(told: Mapping[str, Any]) -> Shape:
    """Read what `asdict` made of a shape."""
    root = dict(told["root"])
    binds = tuple(Bind(**bind) for bind in root.pop("binds"))
    import_paths = tuple(root.pop("import_paths"))
    return Shape(
        root=RootPlan(binds=binds, import_paths=import_paths, **root),
        limits=Limits(**told["limits"]),
        protections=Protections(**told["protections"]),
    )
