"""Other libraries that run code: llm-sandbox on bubblewrap and on Docker, and a Jupyter kernel.

Runs in the environment of `nox -s peers`, for each line of standard input one trial: `bubblewrap`, `docker`, `kernel`
(one execution in a kernel that runs). Imports nothing of ours.
"""

# These libraries are not in our environment.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false

import contextlib
import json
import os
import sys
import time
from typing import Any

CODE = "print(6 * 7)"
ANSWER = "42"


def llm_sandbox(backend: str) -> float:
    """Seconds from nothing to the output of code, as its documentation shows it; without the packages it installs."""
    from llm_sandbox import SandboxSession

    options: dict[str, Any] = {"backend": backend, "lang": "python", "skip_environment_setup": True}
    if backend == "docker":
        image = os.environ.get("BENCHMARK_IMAGE", "python")
        options |= {"image": image, "keep_template": True, "runtime_configs": {"network_mode": "none"}}
    started = time.perf_counter()
    with SandboxSession(**options) as session:
        result = session.run(CODE)
        seconds = time.perf_counter() - started
    if result.stdout.strip() != ANSWER:
        raise RuntimeError(f"exit code {result.exit_code}: {result.stderr[-120:]}")
    return seconds


class Kernel:
    """A Jupyter kernel of this interpreter; not a sandbox."""

    def __init__(self) -> None:
        self._manager: Any = None
        self._client: Any = None

    def execute(self) -> float:
        """Seconds of one execution, from the request until the kernel is idle again."""
        if self._client is None:
            from jupyter_client.manager import start_new_kernel

            self._manager, self._client = start_new_kernel(kernel_name="python3")
        texts: list[str] = []

        def take(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                texts.append(message["content"]["text"])

        started = time.perf_counter()
        self._client.execute_interactive(CODE, output_hook=take, timeout=20)
        seconds = time.perf_counter() - started
        if "".join(texts).strip() != ANSWER:
            raise RuntimeError("the kernel gave another answer")
        return seconds

    def close(self) -> None:
        """End the kernel."""
        if self._client is not None:
            self._client.stop_channels()
            self._manager.shutdown_kernel(now=True)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What the libraries print is nobody's answer.
    os.dup2(2, 1)
    with contextlib.closing(Kernel()) as kernel:
        for line in sys.stdin:
            what = line.strip()
            try:
                answer: dict[str, object] = {"seconds": kernel.execute() if what == "kernel" else llm_sandbox(what)}
            except Exception as error:  # noqa: BLE001 - whatever a library raises is told as a failed trial
                answer = {"error": f"{type(error).__name__}: {error}"[:200]}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
