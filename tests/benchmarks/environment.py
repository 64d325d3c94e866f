"""Where the benchmarks find the environment of other people's libraries."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".cache" / "peers"
# Only for comparison, never required by a package of ours.
PEER_PACKAGES = ("llm-sandbox[docker]", "ipykernel", "jupyter_client")
