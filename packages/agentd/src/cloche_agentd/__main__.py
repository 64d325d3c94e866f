"""Runs the agent from its folder: python3 -I -S .../cloche_agentd/__main__.py"""

import os
import sys

if not __package__:
    # Isolated mode leaves the script's folder out of the path.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    if sys.argv[1:2] == ["--container"]:
        from cloche_agentd import container

        container.entry(sys.argv[2])
    else:
        from cloche_agentd import plain

        plain.entry()
