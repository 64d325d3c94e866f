"""Bounds of the agent: sizes in bytes, times in seconds, counts."""

from ._gen import wire

PROTOCOL_VERSION = wire.PROTOCOL
AGENT_VERSION = "0.1.0"
ENVD_VERSION = "0.6.4"
"""What E2B clients may assume: recursive watches with entries, stdin flag, default user, close_stdin, octet-stream
uploads, metadata of files. No client of theirs asks for more than this."""

HEAD_BYTES = 64 * 1024
HEADER_COUNT = 128
JSON_BODY_BYTES = 16 * 1024 * 1024
BODY_WINDOW_BYTES = 256 * 1024
"""How much of a request body waits in memory before the socket is no longer read."""
DISCARD_BODY_BYTES = 8 * 1024 * 1024
CONNECTIONS = 512
BACKLOG = 1024
DESCRIPTORS = 16384

HEAD_TIMEOUT_S = 10.0
BODY_STALL_S = 30.0
IDLE_TIMEOUT_S = 600.0
WRITE_STALL_S = 600.0
KEEPALIVE_DEFAULT_S = 90.0
NDJSON_KEEPALIVE_S = 5.0

LINK_MESSAGE_BYTES = 60 * 1024
"""Larger requests to init travel in an anonymous file beside the message."""
LINK_REPLY_BYTES = 64 * 1024
LINK_REPLY_TIMEOUT_S = 10.0
LINK_READS = 64
LINK_WAITING = 2048
"""Messages that wait for init to read; one that makes the keeper say more has broken the protocol."""

PIPE_CHUNK_BYTES = 32 * 1024
DISCARD_PAUSE_S = 0.01
TERMINAL_DRAIN_BYTES = 256 * 1024
STDIN_QUEUE_BYTES = 4 * 1024 * 1024
STDIN_ROOM_BYTES = 1024 * 1024
"""How much may wait in a process's input before a stream of input is held back."""
STDIN_PIECE_BYTES = 256 * 1024
PROCESSES = 1024
EXITED_KEPT = 64
REPLAY_HEAD_BYTES = 512 * 1024
REPLAY_TAIL_BYTES = 512 * 1024
REPLAY_TOTAL_BYTES = 16 * 1024 * 1024
"""Of all processes together: beyond it those that ended first lose their output, then those with the most."""
COMMAND_TIMEOUT_MAX_S = 86400.0
OUTPUT_LIMIT_MAX = 1 << 50
"""Largest limit of output that a request may name, in bytes."""

TASKS_RUNNING = 32
TASKS_KEPT = 256
"""Ended tasks; beyond it those that ended first are forgotten."""
TASK_HEAD_BYTES = 768 * 1024
TASK_TAIL_BYTES = 256 * 1024
TASK_LOG_TOTAL_BYTES = 64 * 1024 * 1024
"""Of all tasks together: beyond it those that ended first lose their output. All that run fit into it."""
TASK_PAGE_BYTES = 2 * 1024 * 1024
TASK_WAIT_MAX_S = 60.0
TASK_TERM_GRACE_S = 1.0
"""Between SIGTERM to a task and SIGKILL to everything that it started."""
SECRET_BYTES = 4

ARGUMENT_BYTES = 128 * 1024 - 1
"""The kernel's bound on one argument or one environment entry (MAX_ARG_STRLEN)."""
PATH_BYTES = 4096
NAME_BYTES = 255
METADATA_BYTES = 16 * 1024

KILL_STOP_S = 2.0
KILL_WAIT_S = 3.0
KILL_ROUND_PAUSE_S = 0.002

CODE_BYTES = 1024 * 1024
SOURCES = 500
SOURCE_CHARS = 4 * 1024 * 1024
"""Code of past executions that a context keeps, for the lines of tracebacks."""
CONTEXTS = 32
CONTROL_HEADER_BYTES = 1024 * 1024
RESULT_BYTES = 8 * 1024 * 1024
"""All representations of one result together; what is beyond goes to files."""
RESULT_JSON_BYTES = 256 * 1024
RESULT_TYPES = 32
CHARTS = 64
CHART_POINTS = 4000
"""Of all series of a figure together."""
CHART_ELEMENTS = 500
CHART_TICKS = 200
CHART_TEXT = 500
TABLE_CELLS = 10_000
RESULTS = 64
TRACEBACK_CHARS = 64 * 1024
CONTEXT_START_S = 20.0
INTERRUPT_AGAIN_S = 1.0
INTERRUPT_GRACE_S = 2.0
DEATH_GRACE_S = 1.0

LIST_DEPTH = 32
LIST_ENTRIES = 100_000
LIST_SCAN = 1_000_000
SCAN_ENTRIES = 5000
SCAN_DEPTH = 8
CHANGES = 10_000
OUTPUT_FILES = 100
KNOWN_FILES = 1000
WATCHERS = 32
WATCHED_FOLDERS = 4096
WATCH_EVENTS = 10_000
WATCH_READS = 4
"""Reads of events at a time: a flood of them must not keep the keeper from everything else."""
WATCH_READS_WHOLE = 128
"""More than the kernel's queue can hold."""
WATCHER_IDLE_S = 600.0
FILE_CHUNK_BYTES = 256 * 1024
CONTROL_READ_BYTES = 64 * 1024
"""Small enough that no read maps and unmaps memory for its buffer."""
HELD_BYTES = 16 * 1024
HELD_S = 0.002
"""How much of a streamed answer waits, and how long, for what may follow it."""
FSYNC_BYTES = 4 * 1024 * 1024
TRANSFERS = 16
"""Uploads in parts; one more takes the place of the one that was idle longest."""
TRANSFERS_DONE = 64
TRANSFER_IDLE_S = 600.0
MULTIPART_HEAD_BYTES = 16 * 1024
MULTIPART_PARTS = 1000

LIFETIME_MAX_S = 86400

WORKSPACE_SESSIONS = 64
WORKSPACE_LAYERS = 100
"""Layers at which the keeper squashes by itself, where clients need not know of layers."""
WORKSPACE_PATIENCE_S = 900.0
"""How long the workspace host may take for one request: a publish of very many files, a squash."""
WORKSPACE_END_S = 10.0
EXPORT_PIECE_BYTES = 1024 * 1024
