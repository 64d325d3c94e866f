"""The client of the in-sandbox agent, over any transport that carries its messages."""

from cloche_contract._gen.client.aio import AgentClient
from cloche_contract.kernel.transport import AgentTransport

__all__ = ["AgentClient", "AgentTransport"]
