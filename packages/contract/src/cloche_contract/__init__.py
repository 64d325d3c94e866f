"""The contract of Cloche: what every tool takes and returns, every error, the provider interface, the settings.

Import a noun: `cloche_contract.sandbox`, `.lifecycle`, `.errors`, `.provider`, `.settings`, `.client`, `.agent`.
"""

from cloche_contract.kernel.failure import ClocheError

__all__ = ["ClocheError"]
