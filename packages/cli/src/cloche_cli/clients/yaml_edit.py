"""Put an entry into a YAML text and take it out again, by cutting and pasting at the places that PyYAML tells.

PyYAML reads and never writes the file: writing would lose comments. Each result is read again and compared with what
was there: the graph of nodes must be the same but for our entry, else the file stays as it is.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import yaml

from cloche_cli.clients.edit import Broken, Edited, Unsafe, line_end

# The library's stubs leave this one open.
_compose = cast("Callable[[str, type[yaml.SafeLoader]], yaml.Node | None]", yaml.compose)  # pyright: ignore[reportUnknownMemberType]


class YamlFormat:
    """One YAML document with a mapping of servers."""

    def find(self, text: str, path: Sequence[str]) -> Any:
        found, rest = _descend(_composed(text), path)
        return None if rest or found is None else _constructed(found)

    def put(self, text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edited:
        root = _composed(text)
        found, rest = _descend(root, path)
        if not rest:
            if self.find(text, path) == entry:
                return Edited(text)
            text = _without(text, path)
            return Edited(self.put(text, path, entry).text)
        value: Mapping[str, Any] = entry
        for key in reversed(rest[1:]):
            value = {key: value}
        edited = _inserted(text, root, found, path[: len(path) - len(rest)], rest[0], value)
        _agrees(edited, root, path, len(rest))
        return Edited(edited, tuple(rest[:-1]))

    def take(self, text: str, path: Sequence[str], made: Sequence[str]) -> str:
        _found, rest = _descend(_composed(text), path)
        if rest:
            return text
        text = _without(text, path)
        for length in range(len(path) - 1, 0, -1):
            holder, rest = _descend(_composed(text), path[:length])
            if path[length - 1] not in made or rest or not _is_hollow(holder):
                break
            text = _without(text, path[:length])
        return text

    def new(self, path: Sequence[str], entry: Mapping[str, Any]) -> str:
        value: Mapping[str, Any] = entry
        for key in reversed(path):
            value = {key: value}
        return _dumped(value)


def _constructed(node: yaml.Node) -> Any:
    loader: Any = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except yaml.YAMLError:
        raise Unsafe("has an entry of this name that is no plain data", node.start_mark.line + 1) from None


def _composed(text: str) -> yaml.Node | None:
    try:
        return _compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Broken("YAML", mark.line + 1 if mark else 1, "cannot be read") from None
    except yaml.YAMLError:
        raise Broken("YAML", 1, "cannot be read") from None
    except RecursionError:
        raise Broken("YAML", 1, "is nested too deep") from None


def _pairs(node: yaml.MappingNode, key: str) -> list[int]:
    return [number for number, (name, _value) in enumerate(node.value) if _text(name) == key]


def _text(node: yaml.Node) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def _descend(root: yaml.Node | None, path: Sequence[str]) -> tuple[yaml.Node | None, Sequence[str]]:
    """The deepest node of the path that is there, and the keys that are missing below it."""
    node = root
    for depth, key in enumerate(path):
        if node is None or _is_null(node):
            return node, path[depth:]
        if not isinstance(node, yaml.MappingNode):
            raise Unsafe("holds a value where its servers should be", node.start_mark.line + 1)
        found = _pairs(node, key)
        if len(found) > 1:
            line = node.value[found[1]][0].start_mark.line + 1
            raise Unsafe("holds the same name twice where our entry belongs", line)
        if not found:
            return node, path[depth:]
        node = node.value[found[0]][1]
    return node, ()


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null") and node.value == ""


def _is_hollow(node: yaml.Node | None) -> bool:
    return node is None or _is_null(node) or (isinstance(node, yaml.MappingNode) and not node.value)


def _inserted(
    text: str,
    root: yaml.Node | None,
    holder: yaml.Node | None,
    above: Sequence[str],
    key: str,
    value: Mapping[str, Any],
) -> str:
    end = line_end(text)
    if isinstance(holder, yaml.MappingNode) and holder.flow_style:
        return _inserted_in_braces(text, holder, key, value)
    if isinstance(holder, yaml.MappingNode):
        place = _line_after(text, _last(holder))
        indent = holder.value[0][0].start_mark.column
    elif above:  # a key without a value: ours is the first below it
        name = _key_node(root, above)
        place = _line_after(text, name.end_mark.index)
        indent = name.start_mark.column + 2
    else:
        place, indent = len(text), 0
    lead = "" if place == 0 or text[place - 1] in "\r\n\ufeff" else end
    lines = _dumped({key: value}).splitlines()
    block = "".join(" " * indent + line + end for line in lines)
    return text[:place] + lead + block + text[place:]


def _inserted_in_braces(text: str, holder: yaml.MappingNode, key: str, value: Mapping[str, Any]) -> str:
    pair = f"{key}: {json.dumps(value, ensure_ascii=False)}"
    if not holder.value:
        place = holder.start_mark.index + 1
        return text[:place] + pair + text[place:]
    place = _last(holder.value[-1][1])
    return f"{text[:place]}, {pair}{text[place:]}"


def _without(text: str, path: Sequence[str]) -> str:
    """The text without the pair at the end of the path, which is there."""
    root = _composed(text)
    holder, _rest = _descend(root, path[:-1])
    assert isinstance(holder, yaml.MappingNode)
    index = _pairs(holder, path[-1])[0]
    name, value = holder.value[index]
    start, stop = name.start_mark.index, max(name.end_mark.index, _last(value))
    if holder.flow_style:
        if index + 1 < len(holder.value):
            stop = holder.value[index + 1][0].start_mark.index
        elif index > 0:
            start = _last(holder.value[index - 1][1])
    else:
        start -= name.start_mark.column
        stop = _line_after(text, stop)
    edited = text[:start] + text[stop:]
    _agrees(text, _composed_after(edited), path, 1)
    return edited


def _composed_after(text: str) -> yaml.Node | None:
    try:
        return _composed(text)
    except Broken:
        raise _unsafe() from None


def _key_node(root: yaml.Node | None, path: Sequence[str]) -> yaml.Node:
    holder, _rest = _descend(root, path[:-1])
    assert isinstance(holder, yaml.MappingNode)
    return holder.value[_pairs(holder, path[-1])[0]][0]


def _last(node: yaml.Node) -> int:
    """Where the last thing of a node ends; a block collection itself says only where the next one begins."""
    if not isinstance(node, yaml.CollectionNode) or not node.value or node.flow_style:
        return node.end_mark.index
    if isinstance(node, yaml.SequenceNode):
        return max(node.start_mark.index, _last(node.value[-1]))
    name, value = node.value[-1]
    return max(name.end_mark.index, _last(value))


def _line_after(text: str, place: int) -> int:
    """The start of the line behind a place, or the place itself where it starts one."""
    if place > 0 and text[place - 1] in "\r\n":
        return place
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def _dumped(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, width=10**9)


def _unsafe() -> Unsafe:
    return Unsafe("keeps its servers in a way that nothing can be cut at")


def _agrees(longer: str, shorter: yaml.Node | None, path: Sequence[str], missing: int) -> None:
    """Raise unless the two read the same but for what `longer` has at the path.

    Args:
        missing: how many of the path's last keys `shorter` lacks.
    """
    if not _same(_composed_after(longer), shorter, list(path[: len(path) - missing + 1]), set()):
        raise _unsafe()


def _same(one: yaml.Node | None, two: yaml.Node | None, path: list[str], seen: set[tuple[int, int]]) -> bool:
    """Whether two graphs are equal; where a path is given, `one` has one pair more at its end."""
    if not path:
        if (id(one), id(two)) in seen:
            return True  # aliases may make the graph large as a tree, or endless
        seen.add((id(one), id(two)))
    if isinstance(one, yaml.MappingNode) and path:
        if two is not None and not _is_null(two) and not isinstance(two, yaml.MappingNode):
            return False
        others: list[tuple[yaml.Node, yaml.Node]] = two.value if isinstance(two, yaml.MappingNode) else []
        mine = [pair for pair in one.value if len(path) > 1 or _text(pair[0]) != path[0]]
        return len(mine) == len(others) and all(
            _same(a, c, [], seen) and _same(b, d, path[1:] if _text(a) == path[0] else [], seen)
            for (a, b), (c, d) in zip(mine, others, strict=True)
        )
    if one is None or two is None or one.tag != two.tag or type(one) is not type(two):
        return one is two
    if isinstance(one, yaml.ScalarNode):
        return one.value == two.value
    if isinstance(one, yaml.MappingNode):
        flat = [node for pair in one.value for node in pair]
        other = [node for pair in two.value for node in pair]
    else:
        flat, other = one.value, two.value
    return len(flat) == len(other) and all(_same(a, b, [], seen) for a, b in zip(flat, other, strict=True))
