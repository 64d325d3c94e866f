"""What a sandbox may use: by its request, else by the settings of the operator. It holds, or is refused."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import MISSING

from cloche_contract.errors import ConfigurationInvalid, UnsupportedLimit
from cloche_contract.provider import CreateRequest
from cloche_contract.settings import SETTINGS
from cloche_local.limits import Hierarchy
from cloche_local.spec import Limits

_BY_KEY = {setting.key: setting for setting in SETTINGS}


def asked_limits(
    default: Limits, request: CreateRequest, settings: Mapping[str, str], hierarchy: Hierarchy | None
) -> Limits:
    """The limits of a sandbox that is asked for.

    Raises:
        UnsupportedLimit: no control group of this host holds one of them.
        ConfigurationInvalid: a setting is no number, or out of range.
    """
    memory_mb = _number(settings, "local_memory") if request.memory is MISSING else request.memory
    cpus = _number(settings, "local_cpu") if request.cpu is MISSING else request.cpu
    if memory_mb is not None and (hierarchy is None or not hierarchy.holds("memory")):
        raise UnsupportedLimit(limit="memory")
    if cpus is not None and (hierarchy is None or not hierarchy.holds("cpu")):
        raise UnsupportedLimit(limit="cpu")
    return replace(default, memory_mb=memory_mb, cpus=cpus)


def _number(settings: Mapping[str, str], name: str) -> int | None:
    text = settings.get(name, "").strip()
    if not text:
        return None
    setting = _BY_KEY[name]
    if text.isascii() and text.isdigit() and (setting.minimum or 0) <= int(text) <= (setting.maximum or 0):
        return int(text)
    raise ConfigurationInvalid(setting=setting.env)
