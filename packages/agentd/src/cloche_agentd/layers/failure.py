"""What the layer engine raises."""

from __future__ import annotations


class LayerError(Exception):
    """Something about the layers failed. `code` is one of the error catalogue, `detail` static text for a log."""

    code = "internal_error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class StoreDamaged(LayerError):
    """The store cannot be trusted; nothing in it was changed."""

    code = "layer_store_damaged"


class NoSuchSession(LayerError):
    """There is no session with this id."""

    code = "workspace_session_not_found"


class TooManySessions(LayerError):
    """There are as many sessions as there may be."""

    code = "workspace_session_limit"


class OverlayFailed(LayerError):
    """The kernel refused the mount of a session."""

    code = "overlay_failed"


class SquashInFlight(LayerError):
    """A squash runs already."""

    code = "squash_in_flight"


class NoSpace(LayerError):
    """The disk is full; what there was is as it was."""

    code = "disk_full"
