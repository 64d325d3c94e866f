"""The conformance suite for providers: what every one of them must do, whatever is behind it.

Subclass `ProviderConformance` in a test module and override the fixture `open_provider`;
override `settings` so that each test has a state or an account of its own, since the suite
kills every sandbox that the provider lists. An ability that the provider does not report is
not left out: the suite then checks that it is refused.

Run it with anyio's pytest plugin (`anyio_mode = auto`).
"""

from cloche_testkit.conformance.code import CodeConformance
from cloche_testkit.conformance.execution import ExecutionConformance
from cloche_testkit.conformance.files import FileConformance
from cloche_testkit.conformance.honesty import HonestyConformance
from cloche_testkit.conformance.lifecycle import LifecycleConformance
from cloche_testkit.conformance.tasks import TaskConformance
from cloche_testkit.conformance.transfers import TransferConformance


class ProviderConformance(
    LifecycleConformance,
    HonestyConformance,
    ExecutionConformance,
    FileConformance,
    CodeConformance,
    TaskConformance,
    TransferConformance,
):
    """The whole suite."""


__all__ = [
    "CodeConformance",
    "ExecutionConformance",
    "FileConformance",
    "HonestyConformance",
    "LifecycleConformance",
    "ProviderConformance",
    "TaskConformance",
    "TransferConformance",
]
