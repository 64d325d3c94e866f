"""What a handler can do while its call runs: report progress, attach images."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

PROGRESS_INTERVAL_S = 15.0  # clients are promised one at least every 20 s
MAX_IMAGES = 4
MAX_IMAGE_BYTES = 1024 * 1024
# What models accept as an image. Everything else stays a file of the sandbox.
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

SendProgress = Callable[[float, str], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]


class LiveCall:
    """The `ToolCall` of one running call.

    Source: decision D7 (images); MCP "progress" (values must rise).
    """

    def __init__(self, send_progress: SendProgress | None) -> None:
        """Take the way to the client; `None` when the client did not ask for progress."""
        self._send_progress = send_progress
        self._progress = -1.0
        self._images: list[dict[str, Any]] = []

    @property
    def images(self) -> list[dict[str, Any]]:
        """The attached images as content blocks."""
        return self._images

    async def report(self, progress: float, message: str) -> None:
        """Tell the client; a number that does not rise is replaced by the next one that does."""
        if self._send_progress is None:
            return
        self._progress = progress if progress > self._progress else self._progress + 1
        await self._send_progress(self._progress, message)

    def attach_image(self, media_type: str, data: bytes) -> bool:
        """Put an image into the answer; `False` when it is no picture for a model or one too many."""
        if media_type not in IMAGE_TYPES or len(data) > MAX_IMAGE_BYTES or len(self._images) >= MAX_IMAGES:
            return False
        encoded = base64.b64encode(data).decode("ascii")
        self._images.append({"type": "image", "data": encoded, "mimeType": media_type})
        return True

    async def keep_alive(self, interval_s: float, sleep: Sleep) -> None:
        """Report for ever that the call still runs, so that no client gives up on it."""
        while True:
            await sleep(interval_s)
            await self.report(self._progress + 1, "still running")


async def with_progress(
    call: LiveCall, work: Callable[[], Awaitable[Any]], interval_s: float, sleep: Sleep = anyio.sleep
) -> Any:
    """Run the work and report meanwhile: once before it starts, then at every interval."""
    result: Any = None
    await call.report(0, "started")
    async with anyio.create_task_group() as reporting:
        reporting.start_soon(call.keep_alive, interval_s, sleep)
        result = await work()
        reporting.cancel_scope.cancel()
    return result
