"""Files of MCP clients as people have them: other servers, comments, and every odd way to write."""

from collections.abc import Mapping, Sequence
from typing import Any

ENTRY: Mapping[str, Any] = {"command": "/opt/Ünï code/abx", "args": ["mcp", "start"], "env": {"A_B": 'q"\\u\tx'}}
PATHS: Mapping[str, Sequence[str]] = {
    "json": ("mcpServers", "agent-sandbox"),
    "jsonc": ("mcpServers", "agent-sandbox"),
    "toml": ("mcp_servers", "agent-sandbox"),
    "yaml": ("extensions", "agent-sandbox"),
}

JSON = {
    "empty object": "{}",
    "two empty objects": '{"mcpServers":{}}',
    "space inside": '{ "mcpServers" : { } }\n',
    "one line": '{"theme":"dark","mcpServers":{"git":{"command":"uvx","args":["mcp-server-git"]}}}',
    "one line and a line end": '{"mcpServers": {"git": {"command": "uvx"}}}\n',
    "two spaces": '{\n  "mcpServers": {\n    "git": {\n      "command": "uvx"\n    }\n  }\n}\n',
    "four spaces, no final newline": '{\n    "mcpServers": {\n        "git": {"command": "uvx"}\n    }\n}',
    "tabs and CRLF": '{\r\n\t"mcpServers": {\r\n\t\t"git": {}\r\n\t},\r\n\t"z": [1,\r\n2]\r\n}\r\n',
    "old line ends": '{\r  "mcpServers": {\r    "git": {}\r  }\r}',
    "byte order mark": '\ufeff{\n    "mcpServers": {}\n}\n',
    "no servers yet": '{\n  "$schema": "https://x/y",\n  "ünï": "\\u00fc \u2028 \U0001f40d",\n  "n": -1.5e-7\n}\n',
    "the same name twice elsewhere": '{\n  "a": 1, "a": 2,\n  "mcpServers": {"x": {}, "x": {}}\n}',
    "comma first": '{\n  "mcpServers": {\n    "a": {}\n  , "b": {}\n  }\n}\n',
    "space everywhere": '\n\n {\n\n "mcpServers" :\n\n {\n "a" : { } }\n\n }\n\n',
    "a name with a quote": '{"a\\"b": 1, "mcpServers": {"\\u0061": {}}}',
}
JSONC = {
    "comments everywhere": (
        '// top\n{\n  // one\n  "mcpServers": { // two\n    /* three */ "git": {}, // four, with a comma\n'
        '    "x": { "y": [1, 2,], } // five\n    // "off": {}\n  }, /* six */\n  // seven\n}\n// end'
    ),
    "comment at the end of one line": '{"a": 1 // b\n}',
    "only a comment inside": '{\n  "mcpServers": {\n    // nothing yet\n  }\n}',
    "comment that closes nothing": '{\n  "mcpServers": {\n    "a": "// no comment, /* nor this */" // }\n  }\n}\n',
    "trailing comma and CRLF": '{\r\n  "mcpServers": {\r\n    "a": {},\r\n  },\r\n}\r\n',
    "trailing comma before a comment": '{\n  "mcpServers": {"a": 1, // x\n }}',
}
TOML = {
    "nothing": "",
    "only a comment": "# mine\n",
    "no final newline": 'model = "o3"',
    "other servers between tables": (
        '# top\nmodel = "o3" # m\n\n[mcp_servers.git]\ncommand = "uvx"\nargs = [\n  "a", # one\n  "[x]",\n]\n\n'
        '[mcp_servers.git.env]\nK = "v"\n\n# about the profile\n[profiles.p]\nmodel = "y"\n\n[[items]]\nx = 1\n'
    ),
    "CRLF": 'model = "o3"\r\n\r\n[mcp_servers.git]\r\ncommand = "uvx"\r\n\r\n# end\r\n',
    "own table for all": '[mcp_servers]\n[mcp_servers.git]\ncommand="x"\n\n\n# end',
    "dotted keys": 'mcp_servers.git.command = "x"\n[p]\nq=1\n',
    "byte order mark": "\ufeffa = 1\n",
    "odd header": "[ mcp_servers . \"git\" ]  # c\ncommand = 'x'\n",
    "servers in one line": 'mcp_servers = {git = {command = "x }", args = ["{"]}} # } not this\nz = 1\n',
    "servers in one line, with space": 'a = 1\nmcp_servers = { git = { command = "x" } }',
    "one table with servers in a line each": '[mcp_servers] # c\ngit = { command = "x" }\n\n[p]\nq = 1\n',
    "an empty table in one line": "mcp_servers = {}\n[p]\nq = 1\n",
    "text that looks like a header": 'notes = """\n[mcp_servers.other]\n"""\n',
}
YAML = {
    "nothing": "",
    "only a comment": "# mine\n",
    "no servers yet": "GOOSE_PROVIDER: openai\nGOOSE_MODEL: 'x'",
    "other extensions": (
        "# top\nextensions:\n  developer:\n    enabled: true   # c\n    type: builtin\n\n  # about git\n"
        "  git: {cmd: uvx, args: [a, b]}\n\n# about the rest\nGOOSE_MODE: auto\n"
    ),
    "CRLF": "extensions:\r\n  dev:\r\n    enabled: true\r\n\r\n# rest\r\nz: 1\r\n",
    "four spaces": "extensions:\n    dev:\n        args:\n            - x\nz: 1\n",
    "sequence at the end": "extensions:\n  dev:\n    args:\n    - x\n    - y\n",
    "text block at the end": "extensions:\n  dev:\n    text: |\n      a\n       b\n\nz: 1\n",
    "in braces": "extensions: {}\nz: 1\n",
    "in braces with others": "extensions: {dev: {enabled: true}}\nz: 1",
    "no value": "extensions:\nz: 1\n",
    "no value at the end": "z: 1\nextensions: # soon",
    "document marks": "%YAML 1.1\n---\na: 1\n...\n",
    "anchors": "base: &b {timeout: 1}\nextensions:\n  dev:\n    <<: *b\n  other: *b\n",
    "byte order mark": "\ufeffa: 1\n",
    "odd keys": "'quoted': 1\n\"ünï\": 2\n3: [4]\n? long\n: 5\n",
}
TEXTS: Mapping[str, Mapping[str, str]] = {"json": JSON, "jsonc": {**JSON, **JSONC}, "toml": TOML, "yaml": YAML}
CASES = [(form, name, text) for form, texts in TEXTS.items() for name, text in texts.items()]

# format, text, the line that is told, a word of the message
BROKEN = [
    ("json", "", 1, "early"),
    ("json", "{\n  // mine\n}\n", 2, "comment"),
    ("json", '{\n  "mcpServers": {},\n}\n', 2, "last member"),
    ("json", '{\n  "a": [1,\n 2,\n ]}\n', 3, "last member"),
    ("json", "{\n'a': 1}", 2, "quotes"),
    ("json", '{"a": 1\n"b": 2}', 2, "too few"),
    ("json", '{\r\n\r\n"a" 1}', 3, "colon"),
    ("json", '{"a": NaN}', 1, "no value"),
    ("json", '{"a": 01}', 1, "too few"),
    ("json", '{"a": "b\nc"}', 1, "end"),
    ("json", '{"a": 1}\n{}', 2, "after its end"),
    ("json", '{"a": 1', 1, "too few"),
    ("jsonc", '{\n  /* open\n "a": 1}', 2, "begins nothing"),
    ("jsonc", "{\n,\n}", 2, "quotes"),
    ("json", "[" * 100_000, 1, "deeper"),
    ("toml", "a = 1\nb = \n", 2, "read"),
    ("toml", "a = 1\na = 2\n", 2, "read"),
    ("yaml", "a: 1\nb: [\n", 3, "read"),
    ("yaml", "a: 1\n\tb: 2\n", 2, "read"),
    ("yaml", "a: 1\n---\nb: 2\n", 2, "read"),
    ("yaml", "a: \x01\n", 1, "read"),
]

# format, text, the line that is told if it is one place
UNSAFE = [
    ("json", "[]", 1),
    ("json", '{"mcpServers": []}', 1),
    ("json", '{\n"mcpServers": {},\n"mcpServers": {}\n}', 3),
    ("json", '{\n"mcpServers": {"agent-sandbox": 1,\n"agent-sandbox": 2}}', 3),
    ("toml", 'mcp_servers = {git = 1, "agent\\u002dsandbox" = 2}\n', None),
    ("toml", "mcp_servers = 1\n", None),
    ("toml", 'mcp_servers.agent-sandbox.command = "y"\nnotes = """\n[mcp_servers.agent-sandbox]\n# """\n', None),
    ("yaml", "- a\n", 1),
    ("yaml", "extensions: 5\n", 1),
    ("yaml", "extensions:\n  a: 1\nextensions:\n  b: 1\n", 3),
    ("yaml", "extensions: &e\n  a: 1\nother: *e\n", None),
]
