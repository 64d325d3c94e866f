"""The layer engine: published work of sessions as layers over a read-only base.

It knows no Docker, no protocol and no processes. Every change of the disk goes through a `Door`.
"""
