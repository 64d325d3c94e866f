"""Run Python examples one after the other in one process, each with names of its own and a file for what it prints.

python run_blocks.py NUMBER... in a shell of `script.py`, which has put the source of each into $EXAMPLES/NUMBER.py.
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(os.environ["EXAMPLES"])
    for number in sys.argv[1:]:
        source = folder / f"{number}.py"
        (folder / "at").write_text(number, encoding="utf-8")
        sys.stdout.flush()
        with open(folder / f"{number}.out", "wb") as shown:
            os.dup2(shown.fileno(), 1)
            os.dup2(shown.fileno(), 2)
        exec(compile(source.read_text(encoding="utf-8"), source, "exec"), {"__name__": "__main__"})
