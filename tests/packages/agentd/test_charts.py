"""Figures as data: every chart is also read by the models of E2B's own client."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from typing import Any

import pytest

from cloche_agentd import limits
from tests.packages.agentd.plain_agent import Client, PlainAgent, running_agent

SITE_PACKAGES = next(path for path in sys.path if path.endswith("site-packages"))
pytest.importorskip("matplotlib", reason="no matplotlib: ./bootstrap --dev installs it")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Generator[PlainAgent]:
    """An agent whose user code may import what the tests' environment has."""
    with running_agent(tmp_path_factory.mktemp("charts"), "--import-path", SITE_PACKAGES) as running:
        yield running


def _chart(client: Client, code: str) -> dict[str, Any]:
    """The chart of the one figure that the code makes. Its client's reading of it must not fail."""
    ran = client.execute(f"import matplotlib.pyplot as plt\n{code}\nplt.show()")
    assert ran.error is None, ran.error
    (result,) = ran.results
    assert result["png"].startswith("iVBOR")
    chart = result["chart"]
    charts = pytest.importorskip("e2b_code_interpreter.charts", reason="no client of E2B here")
    read = charts._deserialize_chart(json.loads(json.dumps(chart, allow_nan=False)))
    assert read.type.value == chart["type"]
    return chart


def test_line_chart_has_labels_units_scales_and_points(client: Client) -> None:
    """E2B's line chart: dates on x, two named lines, units in brackets; a mark across the axes is no line."""
    chart = _chart(
        client,
        "from datetime import date, timedelta\n"
        "days = [date(2023, 9, 1) + timedelta(n) for n in range(4)]\n"
        "plt.plot(days, [1, 2, 4, float('nan')], label='up')\n"
        "plt.plot(days, [4, 3, 2, 1])\n"
        "plt.axhline(2)\n"
        "plt.xlabel('Time (s)'); plt.ylabel('Amplitude [Hz]'); plt.title('Two lines')",
    )
    assert (chart["type"], chart["title"]) == ("line", "Two lines")
    assert (chart["x_label"], chart["x_unit"], chart["y_label"], chart["y_unit"]) == (
        "Time (s)",
        "s",
        "Amplitude [Hz]",
        "Hz",
    )
    assert (chart["x_scale"], chart["y_scale"]) == ("datetime", "linear")
    assert [each["label"] for each in chart["elements"]] == ["up", "Line 1"]
    assert chart["elements"][0]["points"] == [
        ["2023-09-01", 1.0],
        ["2023-09-02", 2.0],
        ["2023-09-03", 4.0],
        ["2023-09-04", None],
    ]
    assert len(chart["x_ticks"]) == len(chart["x_tick_labels"]) > 0
    assert all(isinstance(tick, str) for tick in chart["x_ticks"])


@pytest.mark.parametrize(
    ("code", "scale"),
    [
        ("plt.plot([1, 2, 3])", "linear"),
        ("plt.plot(['a', 'b'], [1, 2])", "categorical"),
        ("plt.plot([1, 2], [1, 2]); plt.xticks([0, 1, 2], ['zero', 'one', 'two'])", "categorical"),
        ("plt.plot([1, 10], [1, 2]); plt.xscale('log')", "log"),
        ("plt.plot([1, 10], [1, 2]); plt.xscale('symlog')", "symlog"),
        ("import numpy as np; plt.plot(np.array(['2024-01-01', '2024-01-02'], 'datetime64'), [1, 2])", "datetime"),
    ],
)
def test_scale_of_an_axis(client: Client, code: str, scale: str) -> None:
    """agent-protocol 3: the scales by their names."""
    assert _chart(client, code)["x_scale"] == scale


def test_scatter_chart_has_points_as_the_axis_shows_them(client: Client) -> None:
    """Numbers, names and times, not their places; series by their names."""
    chart = _chart(client, "plt.scatter([1, 2], [3, 4], label='s'); plt.scatter([5], [6])")
    assert chart["type"] == "scatter"
    assert chart["elements"] == [
        {"label": "s", "points": [[1.0, 3.0], [2.0, 4.0]]},
        {"label": "Scatter 1", "points": [[5.0, 6.0]]},
    ]
    named = _chart(client, "plt.scatter(['a', 'b'], [3, 4])")
    assert named["elements"][0]["points"] == [["a", 3.0], ["b", 4.0]]
    timed = _chart(client, "from datetime import datetime\nplt.scatter([datetime(2024, 1, 2, 3)], [4])")
    assert timed["elements"][0]["points"] == [["2024-01-02T03:00:00", 4.0]]


@pytest.mark.parametrize("draw", ["bar", "barh"])
@pytest.mark.parametrize("values", [[3, 5], [4, 4], [7]])
def test_bar_chart_has_its_categories_as_x_whichever_way_it_lies(client: Client, draw: str, values: list[int]) -> None:
    """e2b-dev/code-interpreter#50: dependable, also of equal bars and of a single one."""
    names = ["one", "two"][: len(values)]
    first, second = ("x", "y") if draw == "bar" else ("y", "x")
    code = f"plt.{draw}({names}, {values}); plt.{first}label('Author'); plt.{second}label('Books (pcs)')"
    chart = _chart(client, code)
    assert (chart["type"], chart["x_label"], chart["y_label"], chart["y_unit"]) == (
        "bar",
        "Author",
        "Books (pcs)",
        "pcs",
    )
    assert chart["elements"] == [
        {"label": name, "group": "Group 0", "value": float(value)} for name, value in zip(names, values, strict=True)
    ]


def test_grouped_bars_and_numbers_as_categories(client: Client) -> None:
    """Bars beside each other share the name of their tick; bars at numbers are named by them."""
    grouped = _chart(
        client,
        "import numpy as np\nx = np.arange(2)\n"
        "plt.bar(x - 0.2, [1, 2], 0.4, label='old'); plt.bar(x + 0.2, [3, 4], 0.4, label='new')\n"
        "plt.xticks(x, ['a', 'b'])",
    )
    assert [tuple(each.values()) for each in grouped["elements"]] == [
        ("a", "old", 1.0),
        ("b", "old", 2.0),
        ("a", "new", 3.0),
        ("b", "new", 4.0),
    ]
    counted = _chart(client, "plt.bar([10, 20.5], [1, 2])")
    assert [each["label"] for each in counted["elements"]] == ["10", "20.5"]


def test_pie_chart_has_angles(client: Client) -> None:
    """Label, angle in degrees, radius."""
    chart = _chart(client, "plt.pie([1, 3], labels=['a', 'b'])")
    assert (chart["type"], chart["title"]) == ("pie", None)
    assert chart["elements"] == [
        {"label": "a", "angle": 90.0, "radius": 1.0},
        {"label": "b", "angle": 270.0, "radius": 1.0},
    ]


@pytest.mark.parametrize("options", ["", ", patch_artist=True", ", orientation='horizontal'"])
def test_box_chart_has_the_five_numbers_and_the_outliers(client: Client, options: str) -> None:
    """As they were drawn, filled or not, upright or not, also of a single box."""
    chart = _chart(client, f"plt.boxplot([[1, 2, 3, 4, 5, 20]], tick_labels=['A']{options}); plt.title('T')")
    assert (chart["type"], chart["title"]) == ("box_and_whisker", "T")
    assert chart["elements"] == [
        {
            "label": "A",
            "min": 1.0,
            "first_quartile": 2.25,
            "median": 3.5,
            "third_quartile": 4.75,
            "max": 5.0,
            "outliers": [20.0],
        }
    ]


def test_several_axes_are_a_superchart(client: Client) -> None:
    """One chart for each; a colour bar and empty axes are none."""
    chart = _chart(
        client,
        "figure, axes = plt.subplots(2, 2)\nfigure.suptitle('All')\n"
        "axes[0][0].plot([1, 2]); axes[0][1].bar(['a'], [1])\n"
        "points = axes[1][0].scatter([1, 2], [3, 4], c=[1, 2]); figure.colorbar(points)",
    )
    assert (chart["type"], chart["title"]) == ("superchart", "All")
    assert [each["type"] for each in chart["elements"]] == ["line", "bar", "scatter"]


def test_mixed_axes_tell_each_kind(client: Client) -> None:
    """Bars with a line over them: neither is left out."""
    chart = _chart(client, "plt.bar(['a', 'b'], [1, 2]); plt.plot(['a', 'b'], [2, 1]); plt.title('Both')")
    assert (chart["type"], chart["title"]) == ("superchart", "Both")
    assert [each["type"] for each in chart["elements"]] == ["bar", "line"]


def test_what_is_no_known_chart_says_so(client: Client) -> None:
    """An image is unknown, with its title; an empty figure is a picture alone."""
    chart = _chart(client, "plt.imshow([[1, 2], [3, 4]]); plt.title('Heat')")
    assert chart == {"type": "unknown", "title": "Heat", "elements": []}
    (empty,) = client.execute("import matplotlib.pyplot as plt\nplt.figure()\nplt.show()").results
    assert "chart" not in empty
    assert "png" in empty


def test_chart_is_bounded_and_says_what_it_leaves_out(client: Client) -> None:
    """Of long series evenly spaced points; the whole stays far below what a result may have."""
    chart = _chart(client, "plt.plot(range(100_000), label='x' * 5000); plt.plot(range(10))")
    long, short = chart["elements"]
    assert long["points_total"] == 100_000
    assert len(long["points"]) <= limits.CHART_POINTS
    assert len(long["label"]) == limits.CHART_TEXT
    assert long["points"][1][0] == long["points"][1][1] > 1
    assert len(short["points"]) == 1
    assert len(json.dumps(chart)) < limits.RESULT_JSON_BYTES


def test_figure_as_the_last_expression_has_a_chart(client: Client) -> None:
    """Also without pyplot, and once only."""
    code = "from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1, 2])\nf"
    (result,) = client.execute(code).results
    assert (result["chart"]["type"], result["is_main_result"]) == ("line", True)


def test_l26_table_is_told_as_columns(client: Client) -> None:
    """L26, Daytona#4681: a DataFrame is data, with times and gaps in words of JSON."""
    pytest.importorskip("pandas", reason="no pandas: ./bootstrap --dev installs it")
    code = (
        "import pandas as pd\n"
        "pd.DataFrame({'n': [1, 2], 'f': [0.5, float('nan')], "
        "'t': pd.to_datetime(['2024-01-01', None]), 's': ['a', None]})"
    )
    (result,) = client.execute(code).results
    assert result["data"] == {
        "n": [1, 2],
        "f": [0.5, None],
        "t": ["2024-01-01T00:00:00", None],
        "s": ["a", None],
    }
    assert "<table" in result["html"]
    (large,) = client.execute(f"pd.DataFrame({{'n': range({limits.TABLE_CELLS + 1})}})").results
    assert "data" not in large


def test_numbers_that_json_has_no_word_for_do_not_break_the_line(client: Client) -> None:
    """A strict reader of the stream sees null."""
    code = "class J:\n    def _repr_json_(self): return {'a': float('nan'), 'b': [float('inf')]}\nJ()"
    (result,) = client.execute(code).results
    assert result["json"] == {"a": None, "b": [None]}
