"""Random work in random sessions over real overlays: what is published, squashed and exported equals a plain model."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cloche_agentd._gen import wire
from tests.packages.agentd.layer_model import (
    PERFORMER,
    TELLER,
    Entry,
    Model,
    Operation,
    State,
    applied,
    changed,
    related,
    told,
)
from tests.packages.agentd.plain_agent import running_agent
from tests.packages.agentd.workspace_desk import Desk, lay_out

BASE = {"a": "a\n", "d/x": "x\n", "d/y": "y\n", "d/e/x": "z\n", "e/d/a": "w\n"}
PLAIN_NAMES = ("a", "d", "d", "e", "x", "x", "\n")
# With a NUL: no text, so that nothing is merged by lines.
_TEXTS = st.integers(0, 9).map(lambda number: f"\0{number}\n" * number)
_MODES = st.sampled_from(["700", "740", "755", "4711", "1777"])


Story = list[tuple[str, int, list[Operation]]]


def _operations(names: Sequence[str]) -> st.SearchStrategy[list[Operation]]:
    paths = st.lists(st.sampled_from(names), min_size=1, max_size=3).map("/".join)
    one = st.one_of(
        st.tuples(st.just("write"), paths, _TEXTS),
        st.tuples(st.just("append"), paths, _TEXTS),
        st.tuples(st.just("folder"), paths, st.just("")),
        st.tuples(
            st.just("symlink"), paths, st.sampled_from(["/etc/passwd", "nowhere/at/all", "../../../etc/hostname"])
        ),
        st.tuples(st.just("remove"), paths, st.just("")),
        st.tuples(st.just("move"), paths, paths),
        st.tuples(st.just("link"), paths, paths),
        st.tuples(st.just("again"), paths, _TEXTS),
        st.tuples(st.just("mode"), paths, _MODES),
    )
    return st.lists(one, min_size=1, max_size=8)


def stories(names: Sequence[str]) -> st.SearchStrategy[Story]:
    """What happens: work in one of three sessions, its publication, a squash."""
    work = st.tuples(st.just("work"), st.integers(0, 2), _operations(names))
    publish = st.tuples(st.just("publish"), st.integers(0, 2), st.just(list[Operation]()))
    squash = st.tuples(st.just("squash"), st.just(0), st.just(list[Operation]()))
    return st.lists(st.one_of(work, work, publish, squash), min_size=3, max_size=12)


_STORY = stories((*PLAIN_NAMES, ".wh.a", ".wh..wh..opq"))


class World:
    """The real stack and the model of it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.head = self.base = self.seen("")
        self.sessions: dict[str, tuple[State, Model]] = {}

    def seen(self, session_id: str) -> State:
        """What a session shows; without one, what the stack shows."""
        ran = self.desk.client.run("", process=_python(TELLER), more=_in(session_id))
        assert ran.end["exitCode"] == 0, ran
        return told(ran.stdout)

    def work(self, number: int, operations: list[Operation]) -> None:
        """Do the same in a session and in its model; both say the same."""
        name = f"s{number}"
        if name not in self.sessions:
            self.desk.session(name)
            self.sessions[name] = (self.head, Model(self.head))
        _, model = self.sessions[name]
        ran = self.desk.client.run("", process=_python(PERFORMER + TELLER, json.dumps(operations)), more=_in(name))
        assert ran.end["exitCode"] == 0, ran
        done, seen = ran.stdout.splitlines()
        assert json.loads(done) == model.perform(operations)
        assert told(seen) == model.state()

    def publish(self, number: int) -> None:
        """Publish a session; the stack is then what both sides made of it, or as it was."""
        name = f"s{number}"
        if name not in self.sessions:
            return
        read, model = self.sessions[name]
        ours = model.state()
        mine, others = changed(read, ours), changed(read, self.head)
        result = self.desk.publish(name)
        if result["outcome"] == "rejected":
            assert related(mine | model.remade(), others), result
            assert result["reject_class"] == "source_conflict"
            self.desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": name})
        else:
            self.head = _merged(read, ours, self.head, self.seen(""))
        del self.sessions[name]
        assert self.seen("") == self.head

    def squash(self) -> None:
        """Squash: nobody sees a difference."""
        result = self.desk.squash()
        assert {each["disposition"] for each in result["swept_sessions"]} <= {"identity", "migrated"}, result
        assert self.seen("") == self.head
        for name, (_, model) in self.sessions.items():
            assert self.seen(name) == model.state()

    def end(self) -> None:
        """What is exported makes of the base what the stack shows; and the stack becomes empty of sessions."""
        assert applied(self.base, self.desk.export()) == self.head
        for name in self.sessions:
            self.desk.rpc(wire.LAYERS_DESTROY_SESSION, {"session_id": name})
        self.squash()
        assert applied(self.base, self.desk.export()) == self.head
        assert self.desk.left() == []


def _merged(read: State, ours: State, theirs: State, shown: State) -> State:
    """What two states become: whoever changed a path has it. Of both, the same change."""
    result: State = {}
    mine = changed(read, ours)
    for path in {*read, *ours, *theirs}:
        wanted: Entry | None = ours.get(path) if path in mine else theirs.get(path)
        if path in mine and path in changed(read, theirs):
            assert ours.get(path) == theirs.get(path), path
        if path not in mine and wanted is None and shown.get(path) == ours.get(path):
            # Deleted by them, deleted and made again by us, as it was.
            wanted = ours.get(path)
        if wanted is not None:
            result[path] = wanted
    return result


def _python(program: str, *arguments: str) -> dict[str, object]:
    return {"cmd": sys.executable, "args": ["-I", "-S", "-c", program, *arguments]}


def _in(session_id: str) -> dict[str, object] | None:
    return {"workspaceSession": session_id} if session_id else None


@contextmanager
def _desk() -> Generator[Desk]:
    with tempfile.TemporaryDirectory(prefix="cl-model-") as name:
        folder = Path(name)
        options = lay_out(folder, BASE)
        with running_agent(folder, *options) as agent, agent.client() as client:
            yield Desk(agent, client, folder)


def tell(story: Story, look: Callable[[World], None]) -> None:
    """Let a story happen in an agent and in the model, and compare all the way; `look` sees the end of it."""
    with _desk() as desk:
        world = World(desk)
        for step, number, operations in story:
            if step == "work":
                world.work(number, operations)
            elif step == "publish":
                world.publish(number)
            else:
                world.squash()
        for number in range(3):
            world.publish(number)
        world.end()
        look(world)


def _tell(story: Story) -> None:
    tell(story, lambda _: None)


SETTINGS = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@SETTINGS
@given(_STORY)
def test_w3_what_is_published_squashed_and_exported_equals_a_plain_model(
    story: Story,
) -> None:
    """overlayfs-tools#3 and others: renamed folders, hardlinks, modes, odd names; squash(layers) is the merged view."""
    _tell(story)


@pytest.mark.soak
def test_w3_many_random_stories_equal_the_model(scale: int, seed: int) -> None:
    """Issue 7: the same, as often as asked for, with the stories of the seed."""
    many = settings(SETTINGS, max_examples=2 * scale, derandomize=False)
    hypothesis.seed(seed)(many(given(_STORY)(_tell)))()
