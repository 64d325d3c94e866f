"""The commands `abx` and `cloche`: the composition root of the workspace.

Nothing here is an interface for a library user; `cloche_sdk` is.
"""

__version__ = "0.1.0"
