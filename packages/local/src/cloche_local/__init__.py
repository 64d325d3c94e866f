"""Sandboxes on a bare Linux machine: namespaces, no Docker, no account, as root or as an ordinary user.

Nothing is imported here: the guest half (zygote, keeper, init, mounts, users, seccomp, limits) runs without
site-packages, and the host half must import on macOS and Windows.
"""
