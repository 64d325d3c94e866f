"""Where the benchmarks find the environment of other people's libraries. As a program, it makes that environment."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".cache" / "peers"
# Only for comparison, never required by a package of ours.
PEER_PACKAGES = ("llm-sandbox[docker]", "ipykernel", "jupyter_client")

if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    subprocess.run([str(PEERS / "bin" / "pip"), "install", "--quiet", *PEER_PACKAGES], check=True)
