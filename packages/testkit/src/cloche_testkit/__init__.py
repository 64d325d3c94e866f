"""Test tools: a scripted provider, a conformance suite for providers, helpers for async tests.

The scripted provider gives NO ISOLATION: it runs code directly on the host, as the user who
runs the tests. See `cloche_testkit.scripted`.
"""

__version__ = "0.1.0"
