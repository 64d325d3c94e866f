"""The file system of a sandbox: one tmpfs that holds everything writable, an overlay, and read-only binds.

Runs in init, before it is confined, in a mount namespace of its own. Source: mount_namespaces(7), pivot_root(2),
Documentation/filesystems/overlayfs.rst, mount_setattr(2).
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from cloche_local import syscalls as sys_
from cloche_local.setup import step
from cloche_local.spec import Bind, Protections, RootPlan

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
# /proc files that tell about the host's kernel and have no namespace.
_MASKED = ("keys", "kcore", "timer_list", "sysrq-trigger")
# An inode of a tmpfs takes kernel memory that its size does not count: one per 8 KiB, and room for small files.
_BYTES_PER_INODE = 8192
_READ_ONLY = sys_.MOUNT_ATTR_RDONLY | sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV


@dataclass(frozen=True, slots=True)
class Staging:
    """Where the root is put together: `folder` is an empty host folder that is covered in our namespace only."""

    folder: str
    disk_mb: int | None
    host_root: bool
    range_base: int = 0
    userns_fd: int = -1


def make_private() -> None:
    """Stop mount events both ways: nothing that we mount shows on the host."""
    sys_.mount("none", "/", None, sys_.MS_REC | sys_.MS_PRIVATE)


def build_root(plan: RootPlan, staging: Staging, on: Protections) -> str:
    """Mount everything but /proc below the staging folder; returns the new root's path.

    Raises:
        SetupFailed: naming the step.
    """
    base = staging.folder
    step("tmpfs", _mount_disk, staging)
    step("lower", _mount_lower, plan.skeleton, f"{base}/lower", staging)
    step("overlay", _mount_overlay, staging, on.set_id_ignored)
    root = f"{base}/root"
    for bind in plan.binds:
        step("bind", _bind, bind, root, on.read_only_system)
    if on.minimal_devices:
        step("dev", _mount_dev, root, f"{base}/disk/shm")
    else:
        step("dev", _bind, Bind("/dev", "/dev"), root, False)
    return root


def inodes_of(disk_mb: int) -> int:
    """How many files, folders and links fit onto a disk of this size."""
    return max((disk_mb << 20) // _BYTES_PER_INODE, 4096)


def _mount_disk(staging: Staging) -> None:
    """Everything writable lives on one tmpfs, so one size bounds it all; it vanishes with the namespace."""
    options = "mode=755"
    if staging.disk_mb is not None:
        size = staging.disk_mb << 20
        options += f",size={size},nr_inodes={inodes_of(staging.disk_mb)}"
    # nosuid, nodev: nothing written inside gains rights or is a device.
    sys_.mount("cloche", staging.folder, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, options)
    base = staging.folder
    for name in ("lower", "root", "disk", "disk/upper", "disk/work", "disk/shm"):
        os.mkdir(f"{base}/{name}", 0o755)
    os.chmod(f"{base}/disk/shm", 0o1777)
    if staging.userns_fd >= 0:
        _own_disk(staging)


def _own_disk(staging: Staging) -> None:
    """Give the writable layer to the sandbox's ids: idmapped, so that uid 1000 inside is 1000 in the layer."""
    disk = f"{staging.folder}/disk"
    try:
        _idmap(disk, disk, staging.userns_fd)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # tmpfs takes idmaps since Linux 6.3; before it the layer holds the mapped ids themselves.
        for name in ("upper", "work", "shm"):
            os.chown(f"{disk}/{name}", staging.range_base, staging.range_base)


def _idmap(source: str, target: str, userns_fd: int) -> None:
    tree = sys_.open_tree(source)
    try:
        sys_.mount_setattr(tree, sys_.MOUNT_ATTR_IDMAP, userns_fd=userns_fd)
        sys_.move_mount(tree, target)
    finally:
        os.close(tree)


def _mount_lower(skeleton: str, target: str, staging: Staging) -> None:
    if staging.userns_fd >= 0:
        # Idmapped: without it sandbox root sees every file of the skeleton as nobody's.
        _idmap(skeleton, target, staging.userns_fd)
        return
    tree = sys_.open_tree(skeleton)
    try:
        sys_.move_mount(tree, target)
    finally:
        os.close(tree)


def _mount_overlay(staging: Staging, set_id_ignored: bool) -> None:
    # Relative names: mountinfo inside the sandbox shows the options, and host paths are nobody's business there.
    os.chdir(staging.folder)
    options = "lowerdir=lower,upperdir=disk/upper,workdir=disk/work"
    if not staging.host_root:
        # An ordinary user may not write trusted.* attributes.
        options += ",userxattr"
    with _range_root(staging):
        # nosuid: a program that sandbox root marks set-id gives nobody its rights. nodev: no device from a file.
        flags = sys_.MS_NODEV | (sys_.MS_NOSUID if set_id_ignored else 0)
        sys_.mount("cloche", "root", "overlay", flags, options)
    os.chdir("/")


@contextmanager
def _range_root(staging: Staging) -> Generator[None]:
    """Act on files as the range's root: overlayfs writes its layers as whoever mounted it, and the host's root has no
    id in an idmapped layer (it would fall back to a read-only mount)."""
    if staging.userns_fd < 0:
        yield
        return
    capabilities = sys_.permitted_capabilities()
    sys_.set_fs_ids(staging.range_base, staging.range_base)
    # Leaving id 0 took the file capabilities out of the effective set; copying up needs them.
    sys_.capset(capabilities)
    try:
        yield
    finally:
        sys_.set_fs_ids(0, 0)
        sys_.capset(capabilities)


def _bind(bind: Bind, root: str, read_only: bool) -> None:
    """Show a host folder inside. Recursive: the kernel refuses to uncover what a submount of the host hides."""
    tree = sys_.open_tree(bind.source, sys_.OPEN_TREE_CLONE | sys_.OPEN_TREE_CLOEXEC | sys_.AT_RECURSIVE)
    try:
        if read_only:
            sys_.mount_setattr(tree, _READ_ONLY, flags=sys_.AT_EMPTY_PATH | sys_.AT_RECURSIVE)
        sys_.move_mount(tree, root + bind.target)
    finally:
        os.close(tree)


def _mount_dev(root: str, shm: str) -> None:
    """A /dev with seven harmless devices, terminals of our own, and shared memory from the limited disk."""
    dev = f"{root}/dev"
    sys_.mount("dev", dev, "tmpfs", sys_.MS_NOSUID | sys_.MS_NOEXEC, "mode=755,size=64k,nr_inodes=64")
    for name in _DEVICES:
        target = f"{dev}/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        # A bind of the host's node: mknod is refused in a user namespace.
        sys_.mount(f"/dev/{name}", target, None, sys_.MS_BIND)
    for name, target in _LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts", 0o755)
    # newinstance is implied: terminals of the host are not in it.
    sys_.mount("devpts", f"{dev}/pts", "devpts", sys_.MS_NOSUID | sys_.MS_NOEXEC, "ptmxmode=0666,mode=0620")
    os.mkdir(f"{dev}/shm", 0o1777)
    sys_.mount(shm, f"{dev}/shm", None, sys_.MS_BIND)
    # Read-only last: an ordinary user owns this tmpfs inside and could fill it, past the disk limit.
    flags = sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY | sys_.MS_NOSUID | sys_.MS_NOEXEC
    sys_.mount("none", dev, None, flags)


def mount_proc(root: str, *, own: bool, sealed: bool) -> None:
    """Mount /proc of the new pid namespace; only before the old root goes, else an ordinary user gets EPERM.

    Raises:
        SetupFailed: step `proc`, EPERM where parts of the host's /proc are hidden (inside a container).
    """
    flags = sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC
    if not own:
        step("proc", sys_.mount, "/proc", f"{root}/proc", None, sys_.MS_BIND | sys_.MS_REC)
        return
    step("proc", sys_.mount, "proc", f"{root}/proc", "proc", flags)
    for name in _MASKED if sealed else ():
        with suppress(FileNotFoundError):
            sys_.mount("/dev/null", f"{root}/proc/{name}", None, sys_.MS_BIND)


def seal_proc_sys(root: str) -> None:
    """Make kernel settings read-only. By their modes they are already; this holds whoever runs."""
    target = f"{root}/proc/sys"
    sys_.mount(target, target, None, sys_.MS_BIND)
    flags = sys_.MS_NOSUID | sys_.MS_NODEV | sys_.MS_NOEXEC | sys_.MS_RDONLY
    sys_.mount("none", target, None, sys_.MS_REMOUNT | sys_.MS_BIND | flags)


def switch_root(root: str) -> None:
    """Make `root` the root and drop the old one from the namespace, with every mount of the host.

    Raises:
        SetupFailed: step `pivot`, EINVAL on an initial ramdisk.
    """
    os.chdir(root)
    # Both arguments the same: the old root is stacked over the new one and needs no folder in it.
    step("pivot", sys_.pivot_root, ".", ".")
    step("pivot", sys_.umount, ".", sys_.MNT_DETACH)
    os.chdir("/")
