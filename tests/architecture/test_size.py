"""Nothing in this repository grows past what a reviewer reads in one sitting."""

from __future__ import annotations

import ast

from tests.architecture.workspace import ROOT, hand_written, lines_of, short, syntax_tree

MODULE_LINES = 500
FUNCTION_LINES = 40


def test_every_hand_written_module_has_at_most_500_lines() -> None:
    """Style S3."""
    lengths = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in hand_written()}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_every_function_of_a_package_has_at_most_40_lines_below_its_docstring() -> None:
    """Style S3: a step that deserves a headline deserves a name."""
    long: dict[str, int] = {}
    for path in hand_written():
        if "tests" in path.relative_to(ROOT).parts[:1]:
            continue
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = _body_lines(node)
                if lines > FUNCTION_LINES:
                    long[f"{short(path)}:{node.lineno} {node.name}"] = lines
    assert long == {}


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return 0
    return (node.end_lineno or body[-1].lineno) - body[0].lineno + 1


def test_the_kernel_has_at_most_900_lines() -> None:
    """Architecture 3.2."""
    assert lines_of(ROOT / "packages/contract/src/cloche_contract/kernel") <= 900


def test_the_serving_core_has_at_most_500_lines() -> None:
    """Architecture 3.2."""
    assert lines_of(ROOT / "packages/contract/src/cloche_contract/serving") <= 500


def test_the_generator_has_at_most_2500_lines() -> None:
    """Architecture 3.2: a generator that outgrows this has become a framework."""
    assert lines_of(ROOT / "codegen") <= 2500
