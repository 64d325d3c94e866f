"""A reference platform: the public REST API of E2B, served strictly over real HTTP, with faults on demand.

Its control plane answers what the public API answers; its data plane is the agent of whatever
provider stands behind it. Unmodified clients of E2B work against it, which shows that it tells the truth.
"""

from cloche_testkit.platform.faults import Fault
from cloche_testkit.platform.server import ReferencePlatform
from cloche_testkit.platform.wire import Seen

__all__ = ["Fault", "ReferencePlatform", "Seen"]
