"""What a provider knows and what a model may see of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from cloche_contract.lifecycle import SANDBOX_STATUS_VALUES, AgentEndpoint, SandboxMetadata, SandboxRecord, disclose
from tests.contract.sets import ROOT

MARKER = "hunter2-9f81c3"
NINE = ["sandbox_id", "template", "status", "region", "started_at", "end_at", "cpu_count", "memory_mb", "disk_size_mb"]


def _stuffed() -> SandboxRecord:
    """A record with a marker in every field that is not for a model."""
    return SandboxRecord(
        sandbox_id="sb7f3a",
        template="base",
        status="running",
        started_at="2026-10-16T00:00:00+00:00",
        memory_mb=512,
        url=f"https://{MARKER}",
        agent=AgentEndpoint(
            base_url=f"https://{MARKER}",
            socket_path=f"/{MARKER}",
            access_token=SecretStr(MARKER),
            version="1",
            headers={"X": MARKER},
        ),
        account_id=MARKER,
        user_metadata={MARKER: MARKER},
        lifecycle={"on_timeout": MARKER},
        envs={"KEY": MARKER},
    )


def test_metadata_never_contains_what_a_model_may_not_see() -> None:
    """Seed-000: they omit tokens, variables, account ids, user metadata, lifecycle objects, endpoint URLs."""
    shown = disclose(_stuffed()).model_dump(mode="json")
    assert shown == {
        "sandbox_id": "sb7f3a",
        "template": "base",
        "status": "running",
        "region": None,
        "started_at": "2026-10-16T00:00:00+00:00",
        "end_at": None,
        "cpu_count": None,
        "memory_mb": 512,
        "disk_size_mb": None,
    }
    assert MARKER not in json.dumps(shown)


def test_metadata_has_nine_keys_and_each_is_always_there() -> None:
    """Seed-000: missing resource values are null, and the key is present."""
    assert list(SandboxMetadata.model_fields) == NINE
    for name in NINE:
        given = {key: value for key, value in disclose(_stuffed()).model_dump().items() if key != name}
        with pytest.raises(ValidationError):
            SandboxMetadata.model_validate(given)


def test_token_of_the_agent_does_not_show_itself() -> None:
    record = _stuffed()
    assert record.agent is not None
    assert MARKER not in repr(record.agent.access_token)
    assert json.loads(record.agent.model_dump_json())["access_token"] == "**********"
    assert record.agent.access_token.get_secret_value() == MARKER


def test_every_state_and_every_transition_is_known() -> None:
    lifecycle: dict[str, Any] = json.loads((ROOT / "schemas/lifecycle/sandbox.json").read_text(encoding="utf-8"))
    transitions: dict[str, list[str]] = lifecycle["x-transitions"]
    assert sorted(transitions) == sorted(SANDBOX_STATUS_VALUES)
    assert {after for states in transitions.values() for after in states} <= set(SANDBOX_STATUS_VALUES)
    assert transitions["stopped"] == []


def test_statuses_are_those_of_the_seed() -> None:
    """Systems 2.2."""
    seven = {"creating", "running", "paused", "pausing", "stopping", "stopped", "error"}
    assert set(SANDBOX_STATUS_VALUES) == seven
