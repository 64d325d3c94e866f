"""Where the agent answers, and the headers of its requests. Generated from schemas/agent; do not edit."""

from typing import Final

PROTOCOL: Final = "1"

FILESYSTEM_STAT: Final = "/filesystem.Filesystem/Stat"
FILESYSTEM_LIST_DIR: Final = "/filesystem.Filesystem/ListDir"
FILESYSTEM_MAKE_DIR: Final = "/filesystem.Filesystem/MakeDir"
FILESYSTEM_MOVE: Final = "/filesystem.Filesystem/Move"
FILESYSTEM_REMOVE: Final = "/filesystem.Filesystem/Remove"
FILESYSTEM_WATCH_DIR: Final = "/filesystem.Filesystem/WatchDir"
FILESYSTEM_CREATE_WATCHER: Final = "/filesystem.Filesystem/CreateWatcher"
FILESYSTEM_GET_WATCHER_EVENTS: Final = "/filesystem.Filesystem/GetWatcherEvents"
FILESYSTEM_REMOVE_WATCHER: Final = "/filesystem.Filesystem/RemoveWatcher"
INTERPRETER_EXECUTE: Final = "/execute"
INTERPRETER_CREATE_CONTEXT: Final = "/contexts"
LAYERS_CREATE_SESSION: Final = "/cloche.Layers/CreateSession"
LAYERS_LIST_SESSIONS: Final = "/cloche.Layers/ListSessions"
LAYERS_PUBLISH_SESSION: Final = "/cloche.Layers/PublishSession"
LAYERS_DESTROY_SESSION: Final = "/cloche.Layers/DestroySession"
LAYERS_SQUASH: Final = "/cloche.Layers/Squash"
LAYERS_STATUS: Final = "/cloche.Layers/Status"
PROCESS_START: Final = "/process.Process/Start"
PROCESS_CONNECT: Final = "/process.Process/Connect"
PROCESS_LIST: Final = "/process.Process/List"
PROCESS_SEND_INPUT: Final = "/process.Process/SendInput"
PROCESS_SEND_SIGNAL: Final = "/process.Process/SendSignal"
PROCESS_CLOSE_STDIN: Final = "/process.Process/CloseStdin"
PROCESS_UPDATE: Final = "/process.Process/Update"
TASKS_START: Final = "/cloche.Tasks/Start"
TASKS_GET: Final = "/cloche.Tasks/Get"
TASKS_CANCEL: Final = "/cloche.Tasks/Cancel"
TASKS_LIST: Final = "/cloche.Tasks/List"
ROUTE_HEALTH: Final = "/health"
ROUTE_INFO: Final = "/cloche/info"
ROUTE_KILL: Final = "/cloche/kill"
ROUTE_STREAM_INPUT: Final = "/process.Process/StreamInput"
ROUTE_NETWORK: Final = "/cloche/network"
ROUTE_READ_FILE: Final = "/files"
ROUTE_WRITE_FILE: Final = "/files"
ROUTE_UPLOAD_PART: Final = "/cloche/upload"
ROUTE_EXPORT_LAYERS: Final = "/cloche/layers/export"
ROUTE_METRICS: Final = "/metrics"
ROUTE_CONTEXTS: Final = "/contexts"
ROUTE_REMOVE_CONTEXT: Final = "/contexts/{context_id}"
ROUTE_RESTART_CONTEXT: Final = "/contexts/{context_id}/restart"
ROUTE_INTERRUPT_CONTEXT: Final = "/contexts/{context_id}/interrupt"

HEADER_ACCESS_TOKEN: Final = "X-Access-Token"
"""Token of the sandbox, on every request but GET /health."""
HEADER_RENEW: Final = "Cloche-Renew"
"""Seconds that the sandbox lives from now; on any request."""
HEADER_KILL_ON_DISCONNECT: Final = "Cloche-Kill-On-Disconnect"
"""1: what this request runs is killed when its connection goes away."""
HEADER_TIMEOUT_MS: Final = "Connect-Timeout-Ms"
"""Milliseconds until what this request runs is killed."""
HEADER_OUTPUT_LIMIT: Final = "Cloche-Output-Limit"
"""Bytes that the process of this request may print in all; beyond them it is killed and ends with stopReason output_limit. 0 or left out: no limit."""
HEADER_KEEPALIVE: Final = "Keepalive-Ping-Interval"
"""Seconds of silence after which a stream says that it lives."""
HEADER_SANDBOX_PORT: Final = "E2b-Sandbox-Port"
"""49999 addresses the interpreter, 49983 the rest."""

__all__ = [
    "FILESYSTEM_CREATE_WATCHER",
    "FILESYSTEM_GET_WATCHER_EVENTS",
    "FILESYSTEM_LIST_DIR",
    "FILESYSTEM_MAKE_DIR",
    "FILESYSTEM_MOVE",
    "FILESYSTEM_REMOVE",
    "FILESYSTEM_REMOVE_WATCHER",
    "FILESYSTEM_STAT",
    "FILESYSTEM_WATCH_DIR",
    "HEADER_ACCESS_TOKEN",
    "HEADER_KEEPALIVE",
    "HEADER_KILL_ON_DISCONNECT",
    "HEADER_OUTPUT_LIMIT",
    "HEADER_RENEW",
    "HEADER_SANDBOX_PORT",
    "HEADER_TIMEOUT_MS",
    "INTERPRETER_CREATE_CONTEXT",
    "INTERPRETER_EXECUTE",
    "LAYERS_CREATE_SESSION",
    "LAYERS_DESTROY_SESSION",
    "LAYERS_LIST_SESSIONS",
    "LAYERS_PUBLISH_SESSION",
    "LAYERS_SQUASH",
    "LAYERS_STATUS",
    "PROCESS_CLOSE_STDIN",
    "PROCESS_CONNECT",
    "PROCESS_LIST",
    "PROCESS_SEND_INPUT",
    "PROCESS_SEND_SIGNAL",
    "PROCESS_START",
    "PROCESS_UPDATE",
    "PROTOCOL",
    "ROUTE_CONTEXTS",
    "ROUTE_EXPORT_LAYERS",
    "ROUTE_HEALTH",
    "ROUTE_INFO",
    "ROUTE_INTERRUPT_CONTEXT",
    "ROUTE_KILL",
    "ROUTE_METRICS",
    "ROUTE_NETWORK",
    "ROUTE_READ_FILE",
    "ROUTE_REMOVE_CONTEXT",
    "ROUTE_RESTART_CONTEXT",
    "ROUTE_STREAM_INPUT",
    "ROUTE_UPLOAD_PART",
    "ROUTE_WRITE_FILE",
    "TASKS_CANCEL",
    "TASKS_GET",
    "TASKS_LIST",
    "TASKS_START",
]
