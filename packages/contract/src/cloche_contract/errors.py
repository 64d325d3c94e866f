"""Every error of the catalogue, one class per code under one class per category, and how to look one up."""

from cloche_contract._gen import errors as _errors
from cloche_contract._gen.enums import BackendCause
from cloche_contract.kernel.failure import ClocheError, Retry, envelope, from_code

from ._gen.errors import *  # noqa: F403 - the names of the catalogue

__all__ = ["BackendCause", "ClocheError", "Retry", "envelope", "from_code"]
__all__ += _errors.__all__
