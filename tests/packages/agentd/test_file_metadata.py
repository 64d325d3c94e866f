"""Metadata that clients keep with files. Source: agent-protocol 2.4 (X-Metadata headers, attributes user.e2b.*)."""

from __future__ import annotations

import os

import pytest

from tests.packages.agentd.plain_agent import Client, PlainAgent, Reply


def _upload(client: Client, path: str, **headers: str) -> Reply:
    return client.call("POST", f"/files?path={path}", b"data", content_type="application/octet-stream", **headers)


def _told(client: Client, path: str) -> object:
    return client.rpc("/filesystem.Filesystem/Stat", {"path": path}).value["entry"].get("metadata")


@pytest.fixture(autouse=True)
def _keeps_attributes(agent: PlainAgent) -> None:
    probe = f"{agent.home}/probe"
    with open(probe, "w"):
        pass
    try:
        os.setxattr(probe, "user.probe", b"1")
    except OSError:
        pytest.skip("the file system of the tests keeps no extended attributes")
    finally:
        os.unlink(probe)


def test_metadata_of_an_upload_is_kept_and_told(client: Client, agent: PlainAgent) -> None:
    """By the reply, by Stat and by ListDir; names in lower case, values as they were."""
    reply = _upload(client, "kept", x_metadata_Author="Ada L.", x_metadata_stage="draft 2")
    wanted = {"author": "Ada L.", "stage": "draft 2"}
    assert reply.value[0]["metadata"] == wanted
    assert _told(client, "kept") == wanted
    listed = client.rpc("/filesystem.Filesystem/ListDir", {"path": str(agent.home)}).value["entries"]
    assert [entry["metadata"] for entry in listed if entry["name"] == "kept"] == [wanted]
    assert os.getxattr(f"{agent.home}/kept", "user.e2b.author") == b"Ada L."


def test_upload_replaces_the_metadata_too(client: Client) -> None:
    """A new content has the metadata that came with it, or none; a rename takes it along."""
    _upload(client, "again", x_metadata_a="1")
    client.rpc("/filesystem.Filesystem/Move", {"source": "again", "destination": "moved"})
    assert _told(client, "moved") == {"a": "1"}
    _upload(client, "moved", x_metadata_b="2")
    assert _told(client, "moved") == {"b": "2"}
    _upload(client, "moved")
    assert _told(client, "moved") is None


@pytest.mark.parametrize(
    "headers",
    [{"x_metadata_a": "x" * 17_000}, {f"x_metadata_{'n' * 250}": "x"}, {"x_metadata_a": "\u00e9"}],
    ids=["much", "name", "no ascii"],
)
def test_metadata_that_cannot_be_kept_is_refused_and_nothing_written(
    client: Client, agent: PlainAgent, headers: dict[str, str]
) -> None:
    """Typed, before the file is touched."""
    reply = _upload(client, "refused", **headers)
    assert (reply.status, reply.value["cloche"]["code"]) == (400, "invalid_argument")
    assert not os.path.exists(f"{agent.home}/refused")
    assert [name for name in os.listdir(agent.home) if name.startswith(".cloche")] == []
