"""Files in parts, of any size; where an agent takes none, they are refused."""

import hashlib
import os
import uuid

import pytest

from cloche_contract.provider import ProbeReport
from cloche_testkit.agent_client import AgentRefused, TestAgent
from cloche_testkit.conformance.base import ProviderSuite, has_itself

PART_BYTES = 300_000


class TransferConformance(ProviderSuite):
    """POST /cloche/upload, and GET /files with a range. Capability `transfers`."""

    @pytest.fixture
    def transfer(self) -> str:
        return uuid.uuid4().hex

    @pytest.fixture
    async def place(self, agent: TestAgent) -> str:
        """A path in an empty folder that the default user may write to."""
        outcome = await agent.run('mktemp -d "${HOME:-/tmp}/conformance.XXXXXX"')
        return outcome.stdout.decode().strip() + "/file"

    @pytest.fixture
    async def carrier(self, report: ProbeReport, agent: TestAgent, place: str, transfer: str) -> TestAgent:
        """The agent, where it takes parts; else the test ends once they were refused."""
        if has_itself(report, "transfers"):
            return agent
        with pytest.raises(AgentRefused) as refusal:
            await agent.upload_part(place, b"part", transfer=transfer)
        assert refusal.value.status in (404, 405, 501)
        pytest.skip("this provider takes no parts, and refuses them")

    async def test_f10_parts_become_the_file_with_the_last_one(
        self, carrier: TestAgent, place: str, transfer: str
    ) -> None:
        """Fault F10: each answer tells size and SHA-256 of what is there; until the end the old file stays."""
        data = os.urandom(4 * PART_BYTES + 17)
        await carrier.write(place, b"old")
        for offset in range(0, len(data), PART_BYTES):
            end = min(offset + PART_BYTES, len(data))
            told = await carrier.upload_part(
                place, data[offset:end], transfer=transfer, offset=offset, last=end == len(data)
            )
            assert told == {
                "size": end,
                "sha256": hashlib.sha256(data[:end]).hexdigest(),
                "complete": end == len(data),
            }
            assert (await carrier.run(f"cat {place}")).stdout == (data if end == len(data) else b"old")

    async def test_an_empty_file_is_one_empty_part(self, carrier: TestAgent, place: str, transfer: str) -> None:
        told = await carrier.upload_part(place, b"", transfer=transfer)
        assert (told["size"], told["complete"]) == (0, True)
        assert await carrier.read(place) == b""

    async def test_f24_a_part_that_does_not_follow_is_refused_and_changes_nothing(
        self, carrier: TestAgent, place: str, transfer: str
    ) -> None:
        await carrier.upload_part(place, b"abc", transfer=transfer, last=False)
        with pytest.raises(AgentRefused) as refusal:
            await carrier.upload_part(place, b"xyz", transfer=transfer, offset=5)
        assert refusal.value.code == "transfer_conflict"
        await carrier.upload_part(place, b"def", transfer=transfer, offset=3)
        assert await carrier.read(place) == b"abcdef"

    async def test_a_transfer_that_never_began_has_its_own_error(
        self, carrier: TestAgent, place: str, transfer: str
    ) -> None:
        with pytest.raises(AgentRefused) as refusal:
            await carrier.upload_part(place, b"xyz", transfer=transfer, offset=3)
        assert refusal.value.code == "transfer_not_found"

    @pytest.mark.parametrize(("first", "last"), [(0, 0), (3, 7), (8, 99)])
    async def test_a_range_is_exactly_what_was_asked_for(
        self, carrier: TestAgent, place: str, first: int, last: int
    ) -> None:
        await carrier.write(place, b"0123456789")
        where, data = await carrier.read_range(place, first, last)
        assert data == b"0123456789"[first : last + 1]
        assert where == f"bytes {first}-{min(last, 9)}/10"

    async def test_f20_a_range_beyond_the_end_is_an_error(self, carrier: TestAgent, place: str) -> None:
        await carrier.write(place, b"0123456789")
        with pytest.raises(AgentRefused) as refusal:
            await carrier.read_range(place, 10, 20)
        assert refusal.value.status == 416

    async def test_parts_come_back_as_the_file(self, carrier: TestAgent, place: str) -> None:
        data = os.urandom(2 * PART_BYTES + 5)
        await carrier.write(place, data)
        read = b""
        while len(read) < len(data):
            read += (await carrier.read_range(place, len(read), len(read) + PART_BYTES - 1))[1]
        assert hashlib.sha256(read).digest() == hashlib.sha256(data).digest()
