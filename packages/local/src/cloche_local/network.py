"""The network of sandboxes as the host half sees it: which rules a new one gets, and changing them later."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import MISSING

from cloche_contract.errors import (
    ConfigurationInvalid,
    InvalidArgument,
    ProviderTimeout,
    ProviderUnavailable,
    UnsupportedOperation,
)
from cloche_contract.provider import CreateRequest
from cloche_local import agent_call
from cloche_local.egress_rules import Malformed, parse_rules, split_setting

SETTING = "ABX_LOCAL_EGRESS"
_TIMEOUT_S = 5.0


def wanted_rules(request: CreateRequest, settings: Mapping[str, str]) -> tuple[str, ...] | None:
    """The rules of a new sandbox: the request's, else the setting's; None is no network at all.

    Raises:
        InvalidArgument, ConfigurationInvalid: a rule is malformed. It is not left out, and nothing is made.
    """
    if request.egress is not MISSING:
        return _written(request.egress, InvalidArgument(field="egress", rule="pattern"))
    texts = split_setting(settings.get("local_egress", ""))
    return _written(texts, ConfigurationInvalid(setting=SETTING)) if texts else None


def _written(texts: Sequence[str], wrong: InvalidArgument | ConfigurationInvalid) -> tuple[str, ...]:
    try:
        return tuple(str(rule) for rule in parse_rules(texts))
    except Malformed as error:
        raise wrong from error


def check_update(**changes: Sequence[str]) -> None:
    """See that every rule can be read, before a sandbox is asked.

    Raises:
        InvalidArgument: names the argument.
    """
    for name, texts in changes.items():
        _written(texts, InvalidArgument(field=name, rule="pattern"))


async def update_rules(socket_path: str, token: str, allow: Sequence[str], remove: Sequence[str]) -> list[str]:
    """Change the rules of a live sandbox; returns those in force.

    Raises:
        UnsupportedOperation: the sandbox was made without a network.
        InvalidArgument: there would be too many rules, or one to remove is not in force; nothing changed.
        ProviderUnavailable, ProviderTimeout: it did not answer; its rules may have changed.
    """
    body = json.dumps({"add": list(allow), "remove": list(remove)}).encode()
    try:
        answer = await agent_call.ask(socket_path, token, "/cloche/network", body, timeout_s=_TIMEOUT_S)
    except agent_call.AgentSilent as silent:
        raise ProviderTimeout from silent
    except agent_call.AgentRefused as refused:
        if refused.status == 501:
            raise UnsupportedOperation(capability="egress") from refused
        if refused.status == 404:
            raise InvalidArgument(field="remove", rule="enum") from refused
        if refused.status == 400:
            raise InvalidArgument(field="allow", rule="maxItems") from refused
        raise ProviderUnavailable from refused
    return cast("list[str]", cast("Mapping[str, Any]", json.loads(answer))["rules"])
