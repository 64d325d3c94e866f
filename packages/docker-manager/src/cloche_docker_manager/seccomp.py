"""The system calls that a container may make: Docker's list less what no sandbox needs, plus what mounts need.

User code keeps this filter and has no capability, so a call that needs one is refused for it anyway. What needs none
and gives one is refused here: a user namespace.

Source: docker.md of the design; seccomp(2); the format of Docker's seccomp profiles.
"""

from __future__ import annotations

import json
from typing import Any

_CLONE_NEWUSER = 0x10000000
_ENOSYS, _EPERM = 38, 1
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK.
_FAMILIES = (1, 2, 10, 16)
# Linux, 32 bit Linux, an old version number of it, both, and the query. Randomisation stays on.
_PERSONALITIES = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)

_EVERYBODY = """
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer
getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid
getsockname getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1
inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set kcmp
kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr
listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create mincore
mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open
mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap
nanosleep newfstatat open openat openat2 pause pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc
pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_madvise process_mrelease
process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
recvfrom recvmmsg recvmsg removexattr removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction
rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select
semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address
setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit
setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4
socketpair splice stat statfs statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create
timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill
truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
"""

# For the agent, which has the capability that they need: it sets up mounts and namespaces of sessions.
_AGENT = """
chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root setns sethostname statmount
listmount umount umount2
"""


def profile() -> str:
    """The profile, as the engine wants it."""
    rules: list[dict[str, Any]] = [
        {"names": [*_EVERYBODY.split(), *_AGENT.split()], "action": "SCMP_ACT_ALLOW"},
        # clone3 hides its flags behind a pointer; C libraries fall back to clone.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
        {"names": ["clone", "unshare"], "action": "SCMP_ACT_ALLOW", "args": [_without(_CLONE_NEWUSER)]},
    ]
    for name, values in (("socket", _FAMILIES), ("personality", _PERSONALITIES)):
        rules += [{"names": [name], "action": "SCMP_ACT_ALLOW", "args": [_equal(0, value)]} for value in values]
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": _EPERM,
            "archMap": [
                {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
                {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
            ],
            "syscalls": rules,
        }
    )


def _without(flag: int) -> dict[str, object]:
    return {"index": 0, "value": flag, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}


def _equal(index: int, value: int) -> dict[str, object]:
    return {"index": index, "value": value, "valueTwo": 0, "op": "SCMP_CMP_EQ"}
