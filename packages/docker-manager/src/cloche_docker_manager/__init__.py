"""Sandboxes in a Docker Engine: many agents on one project, each in layers of its own over one read-only copy.

Importing this package is cheap; docker-py is loaded when an engine is first asked for something.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
