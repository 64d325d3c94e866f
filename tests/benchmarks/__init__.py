"""Paired benchmarks: what a sandbox costs beside the same work without one, measured interleaved in one run."""
