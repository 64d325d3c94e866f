"""What the product must do, as ids with a sentence and a source.

`FAULTS` are failures that real users of such tools hit, each with the outcome that is right here. A row is
shown by every test whose name starts with its id: T1 by `test_t1_sleep_past_its_timeout_leaves_no_process`.
tests/architecture/test_requirements.py checks both directions: no row without a test, no test for an
unknown row. `TOOLS` says what each tool must do; tests/contract checks that it lists exactly the tools there are.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
_FAULT_TEST = re.compile(r"^test((?:_[tofpmlew]\d{1,2})+)_")
# Tests of the rules for schemas are named after these rules, L01 to L13, which are no faults.
_NO_FAULTS = "codegen/"


@dataclass(frozen=True)
class Requirement:
    """One thing the product must do, and where it is demanded."""

    sentence: str
    source: str


FAULTS: Mapping[str, Requirement] = {
    "T1": Requirement("A command past its timeout is killed with its tree; the result has what it printed.", "E2B#500"),
    "T2": Requirement("What a timed-out command left in the background is gone and no longer listed.", "E2B#1031"),
    "T3": Requirement("A background child of a timed-out shell is gone as well.", "langfuse#15955"),
    "T6": Requirement("A command that leaves a background job returns at once.", "dagger#6672"),
    "T7": Requirement("A command without a timeout has the default one.", "rakazo#28"),
    "T8": Requirement("A timeout result carries the output so far and says timed_out.", "SWE-ReX#151"),
    "T11": Requirement("Each limit of create holds, or is refused.", "microsandbox#494"),
    "T9": Requirement("A timeout is honoured as it is given, or refused with the maximum.", "MassGen#743"),
    "T10": Requirement("A command past its timeout is a typed error, never exit code -1.", "microsandbox#468"),
    "T12": Requirement("Standard input is empty; a timeout fires whatever a command waits for.", "microsandbox#1549"),
    "T14": Requirement("A program that asks gets no input, and the result says that it asked.", "agentuity/sdk#1176"),
    "T15": Requirement("A stuck command or context never blocks another one.", "cloudflare/sandbox-sdk#320"),
    "T16": Requirement("A stream that breaks off is told as that; no exit code is made up.", "sandbox-sdk#101"),
    "T17": Requirement("`exit N` in a session gives its code; the sandbox stays usable.", "sandbox-sdk PR#632"),
    "T18": Requirement("A working directory that is gone gives an error that says so.", "sandbox-sdk#288"),
    "T20": Requirement("One timeout fails one command and nothing else.", "OpenMinis#358"),
    "T21": Requirement("A job outlives its connection; what it printed is kept for whoever comes back.", "E2B#1074"),
    "T22": Requirement("An agent that does not answer is given up, with a typed error.", "E2B#1128"),
    "T23": Requirement("The longest lifetime is kept and told; a longer one is refused.", "E2B#879"),
    "T24": Requirement("No deadline of a connection is shorter than that of its work.", "remotion#7231"),
    "T25": Requirement("An unknown option is refused; a cancelled call ends its process.", "smithers#738"),
    "T26": Requirement("The outer deadline leaves the partial output its time.", "dust#28004"),
    "T27": Requirement("Long work goes on by a handle, and is fetched later.", "xpipe#870"),
    "T28": Requirement("Whoever asks hears progress at once and then every 20 s, rising.", "build123d-mcp#369"),
    "T29": Requirement("A stream ends with its command, whoever still holds the output.", "agentuity/sdk PR#1261"),
    "T31": Requirement("A heredoc typed into a session is one command.", "Daytona#4230"),
    "T32": Requirement("A command reaches one shell as it was written.", "OpenSandbox#127"),
    "T34": Requirement("A background server outlives the call that started it.", "claude-code#35986"),
    "T35": Requirement("A signal never reaches whoever got the process number later.", "sandbox-server#21"),
    "T36": Requirement("A fork bomb stops at the process limit, and what failed there says so.", "NemoClaw#809"),
    "T37": Requirement("Thousands of calls leave no descriptor, thread, process, file or memory.", "SandboxFusion#67"),
    "O1": Requirement("Output that is not UTF-8 is replaced and flagged.", "inspect_k8s_sandbox#206"),
    "O3": Requirement("Only the framing ends a line; Unicode's line ends are output.", "OpenSandbox PR#1444"),
    "O4": Requirement("Blank lines arrive as they were written.", "OpenSandbox PR#902"),
    "O6": Requirement("A burst before the exit is read to its end, or counted.", "codex#45540"),
    "O7": Requirement("Output is bounded while it is read; the server's memory stays flat.", "ggcode#1316"),
    "O8": Requirement("Long output keeps its head and its tail, with the totals.", "inspect_ai PR#2828"),
    "O9": Requirement("Truncated output always says so.", "Ix#425"),
    "O10": Requirement("Streamed output is whole; only the kept copy is bounded.", "huggingface_hub#4839"),
    "O11": Requirement("What prints more than it may in all is ended, and the reason says so.", "piston#301"),
    "O14": Requirement("Standard output and standard error stay apart.", "Daytona#2067"),
    "O15": Requirement("Large output of a terminal arrives whole.", "libmodal#245"),
    "O16": Requirement("Clean output has the last state of a progress bar, and no control sequences.", "NexAU#8"),
    "O17": Requirement("Text outside ASCII prints on any host locale.", "pytoutv#73"),
    "O12": Requirement("The limits of output are in the description and in the result.", "sandbox-sdk#370"),
    "O18": Requirement("A page of output stays below what clients take.", "rollbar-mcp#28"),
    "O19": Requirement("A task that has ended stays readable.", "DesktopCommander#166"),
    "O21": Requirement("No text mentions a tool that is not enabled.", "deepagents#5798"),
    "F1": Requirement("Every byte value survives a write and a read.", "slicc#2878"),
    "F2": Requirement("Bytes that are no text come through unchanged.", "agentscope-java#2447"),
    "F4": Requirement("Malformed Base64 is refused before the file is touched.", "openai-agents-js#1787"),
    "F6": Requirement("An upload is stored decoded.", "Termix#216"),
    "F7": Requirement("A file that is no text can be read.", "upstash/box#95"),
    "F8": Requirement("The encoding argument decides how a file is read and written.", "sandbox-sdk PR#167"),
    "F9": Requirement("A read gives the content and nothing around it.", "sandbox-sdk#10"),
    "F10": Requirement("An upload of any size is whole, and told by size and hash.", "OpenSandbox#1016"),
    "F12": Requirement("Too large an argument is refused with the limit.", "fastmcp#854"),
    "F13": Requirement("What was written is told, never cut in silence.", "claude-code#50358"),
    "F14": Requirement("A huge file is refused by its size before it is read.", "superserve PR#234"),
    "F15": Requirement("Input of any length arrives whole, or the call fails.", "inspect_k8s_sandbox#244"),
    "F16": Requirement("Any UTF-8 file name makes the round trip.", "Daytona#4323"),
    "F18": Requirement("The mode of a file can be set and is kept by an overwrite.", "vm0#373"),
    "F20": Requirement("A transfer that breaks is an error, never a short success.", "moltis#1040"),
    "F21": Requirement("Only absolute paths are taken; ~ and $HOME are refused.", "execd#726"),
    "F22": Requirement("Many uploads leave no descriptor open.", "OpenSandbox PR#468"),
    "F23": Requirement("What a call wrote, the next call reads.", "mcp-gateway#65"),
    "F24": Requirement("What fits nothing is refused or told, never a silent success.", "container-use#320"),
    "F30": Requirement("A binary file is told by its content, not by its name.", "cloudflare changelog"),
    "F31": Requirement("A long listing is cut, counted and flagged.", "agent-sandbox MCP README"),
    "F32": Requirement("A path that is denied gives a typed error.", "E2B#807"),
    "P1": Requirement("A new file below a link is judged by where it ends up.", "DesktopCommander#420"),
    "P3": Requirement("A path with `..` is refused, not compared as text.", "code-mcp#4"),
    "P4": Requirement("File tools cannot leave the sandbox, whatever the path.", "mcp-server-cloudflare#478"),
    "P6": Requirement("A tree that is swapped while it is walked leads nowhere else.", "inspect_ai#5285"),
    "P8": Requirement("A link is judged by what it leads to.", "claude-code#23960"),
    "M1": Requirement("A dependency that prints never reaches standard output.", "mcp-hangar#563"),
    "M3": Requirement("The server ends when its client closes standard input.", "python-sdk#2231"),
    "M4": Requirement("The server ends when its client stops reading.", "mcp-server-cloudflare#487"),
    "M5": Requirement("A session that is unknown is answered with 404, so that clients start anew.", "neotoma#1923"),
    "M6": Requirement("A cancelled call kills its process tree and is not answered.", "codex#20925"),
    "M8": Requirement("Optional arguments are absent, never null unions.", "cursor#3778"),
    "M9": Requirement("Input schemas have single types and no exotic keywords.", "copilot-cli#4623"),
    "M10": Requirement("Published schemas are inlined: no $schema, $ref or $defs.", "DesktopCommander#79"),
    "M11": Requirement("structuredContent matches the output schema for every tool.", "gemini-cli#21053"),
    "M12": Requirement("The same JSON stands in the text of every result.", "mcp-ts-core#19"),
    "M13": Requirement("The Host headers that are answered can be set; a refusal says how.", "python-sdk#1798"),
    "M14": Requirement("A silent stream is kept open, and no proxy holds it back.", "neotoma PR#1486"),
    "M15": Requirement("Clients share no session; what a principal made is not found by another.", "hive#2762"),
    "M16": Requirement("A request without a session says what to send.", "searxng#173"),
    "M19": Requirement("Odd messages are answered as the protocol says; the conformance suite passes.", "codex#13987"),
    "M18": Requirement("The operator chooses the tools that a client sees.", "OpenSandbox PR#145"),
    "M20": Requirement("A failure is isError with a stable code.", "code-sandbox-mcp"),
    "L1": Requirement("Parallel first calls share one sandbox.", "OpenRath#34"),
    "L2": Requirement("A create that fails or ends half-way leaves nothing.", "hephaestus#1080"),
    "L4": Requirement("A create that is tried again with its key makes one sandbox.", "E2B#1658"),
    "L5": Requirement("Parallel commands do not mix their output.", "deer-flow#1435"),
    "L7": Requirement("A server killed with SIGKILL leaves nothing past the deadline.", "node-code-sandbox-mcp#51"),
    "L8": Requirement("What is removed is dead by its lock, whatever its age or record says.", "hermes-agent#75467"),
    "L9": Requirement("A reused pid is not mistaken for its former owner.", "llxprt-code#3449"),
    "L15": Requirement("A sandbox that nobody uses ends by its lease, which each use renews.", "OpenSandbox#759"),
    "L11": Requirement("Everything that is made in a Docker Engine carries a label.", "codeArbiter#173"),
    "L18": Requirement("A sandbox whose container is gone is shown as failed.", "agent-sandbox#275"),
    "L16": Requirement("What is written between pauses is there after all of them.", "E2B#884"),
    "L17": Requirement("A call after the end of a lifetime says that it is over.", "E2B#736"),
    "L14": Requirement("Sixty streams at once come whole.", "OpenSandbox#1528"),
    "L21": Requirement("Sandbox objects that are closed leave no connection.", "E2B#1155"),
    "L22": Requirement("A variable of one run_code is there in the next.", "twenty#21664"),
    "L23": Requirement("An interpreter that died says so and why; the next call has a new one.", "jupyter/help#418"),
    "L25": Requirement("One display call gives one result.", "E2B#670"),
    "L26": Requirement("A table or figure has the same shape of result from every provider.", "Daytona#4681"),
    "L27": Requirement(
        "New sub-folders are watched whole; an overflow of events is told.", "microsandbox#537, fswatch#330"
    ),
    "L29": Requirement("The timeout that is asked for is the one that holds.", "llm-sandbox#100"),
    "P14": Requirement("No special file enters a layer or template; no link in one leads out of it.", "KubeHound#427"),
    "E1": Requirement("No variable of the server is visible inside.", "srt#58"),
    "E5": Requirement("No default secret; without a token nothing listens on the network.", "dify#36637"),
    "E6": Requirement("The address is this machine's own unless a token is needed.", "agent-sandbox MCP README"),
    "E8": Requirement(
        "A host outside the allowlist is denied, and a start without the filter is refused.", "claude-code#78608"
    ),
    "E9": Requirement("A relay inside gets no further: the policy is by destination.", "claude-code#87381"),
    "E10": Requirement("CONNECT to an allowed host works.", "srt#353"),
    "E11": Requirement("Rules hold for host and port, and for networks.", "srt#274"),
    "E13": Requirement("Every denial has one shape that names the rule; the tool result tells it.", "sbx-releases#611"),
    "E14": Requirement(
        "Requests to a platform and to its sandboxes go through the proxy of the environment.", "E2B#693"
    ),
    "E15": Requirement("A file of the workspace cannot widen the policy.", "claude-code#86504"),
    "E16": Requirement("A host that cannot isolate is refused with the cause and the fix.", "srt#74"),
    "E17": Requirement("Nothing runs without isolation.", "vellum-assistant PR#155"),
    "E18": Requirement("A disk limit holds, or is refused.", "hermes-agent#57994"),
    "E19": Requirement("Every writable place is under the limit.", "microsandbox#1007"),
    "E20": Requirement("Running out of memory has its own stop reason.", "SandboxFusion#43"),
    "T4": Requirement(
        "A command that timed out is killed inside the sandbox, not only for its client.", "inspect_ai#2779"
    ),
    "L10": Requirement("What is removed is removed by name; nothing depends on its maker living on.", "repopilot#87"),
    "L13": Requirement("Concurrent creations never meet on a port.", "OpenSandbox#1705"),
    "P10": Requirement("A path is a field of its own: no colon in it splits anything.", "qwen-code#5386"),
    "P11": Requirement("A workspace that is not there is an error, and is not made on the host.", "mulmoclaude#3191"),
    "E3": Requirement("No secret is in labels, arguments or what the engine tells.", "qwen-code#12269"),
    "E4": Requirement("No secret is in the environment of what user code starts.", "judge0#564"),
    "E21": Requirement("No socket of the engine gets inside, by whatever folder.", "desktop-feedback#83"),
    "P13": Requirement("An export never goes over the root, a home or what the manager keeps.", "seed-003"),
    "W6": Requirement("Files that the host would execute later are left out of an export, and told.", "CVE-2026-26268"),
    "F25": Requirement("What an export writes belongs to whoever runs the manager.", "deer-flow#1398"),
    "F27": Requirement("Of many writers of one file each leaves it whole.", "desktop-feedback#295"),
    "F29": Requirement("Programs may write where they expect to in any image.", "llm-sandbox#121"),
    "P12": Requirement("A path of another system is refused, not taken apart.", "run-mcp#7"),
    "L19": Requirement("A sandbox is handed out only when it answers.", "agent-sandbox PR#1513"),
    "L28": Requirement("No image is made or changed.", "llm-sandbox#95"),
    "E22": Requirement("The engine is found as Docker's own client finds it.", "docker-mcp#21"),
    "E23": Requirement(
        "An engine that does not answer is one line of cause and one of what to do.", "container-use#261"
    ),
    "W1": Requirement("A folder that was deleted and made again does not show its old files.", "try#163"),
    "W3": Requirement("Every mark, link, attribute and odd name keeps its meaning in layers.", "overlayfs-tools#3"),
    "W5": Requirement("An export is one state, whatever is written meanwhile.", "seed-003#export_changes"),
    "W8": Requirement("What an agent changed is told of the whole layer.", "container-use PR#359"),
}

MANAGEMENT_TOOLS: Mapping[str, Requirement] = {
    "list_docker_images": Requirement(
        "Every local image that a sandbox can be made of.", "seed-003#list_docker_images"
    ),
    "list_workspace_directories": Requirement(
        "Directories below the roots that the operator allows, one level at a time.",
        "seed-003#list_workspace_directories",
    ),
    "create_sandbox": Requirement(
        "Sandboxes over one shared read-only base, all of them ready or none made.", "seed-003#create_sandbox"
    ),
    "list_sandboxes": Requirement("Every record, without asking a sandbox.", "seed-003#list_sandboxes"),
    "inspect_sandbox": Requirement("One record, without asking the sandbox.", "seed-003#inspect_sandbox"),
    "destroy_sandbox": Requirement(
        "Agent, container and record removed in this order, or the record kept as failed.", "seed-003#destroy_sandbox"
    ),
    "squash_layerstacks": Requirement(
        "Runs of layers become one layer each; what sessions see stays as it is.", "seed-003#squash_layerstacks"
    ),
    "export_changes": Requirement(
        "Published changes above the base, checked as a whole, in a directory or an archive.", "seed-003#export_changes"
    ),
}

TOOLS: Mapping[str, Requirement] = {
    "create_sandbox": Requirement(
        "A sandbox is made with the options given and becomes the default of the session.", "seed-001#create_sandbox"
    ),
    "list_sandboxes": Requirement(
        "Visible sandboxes are listed page by page; nothing is made, nothing is chosen.",
        "seed-000#discover-and-inspect",
    ),
    "get_sandbox": Requirement(
        "Current metadata of one sandbox, nine keys; its lifetime is not touched.", "seed-000#discover-and-inspect"
    ),
    "set_sandbox_timeout": Requirement(
        "A sandbox lives for so many seconds from now, and later uses renew by as many.", "seed-000#create-and-extend"
    ),
    "run_code": Requirement(
        "Code runs in the interpreter; Python keeps its variables, figures come back as images.", "seed-001#run_code"
    ),
    "run_command": Requirement(
        "One shell command runs to its end; streams, exit code and why it stopped come back.", "seed-001#run_command"
    ),
    "read_file": Requirement("A file comes back as text, or as base64 where it is none.", "seed-001#read_file"),
    "write_file": Requirement("A file is replaced as a whole or not at all.", "seed-001#write_file"),
    "list_files": Requirement("The entries of one directory, sorted by name.", "seed-001#list_files"),
    "kill_sandbox": Requirement(
        "A sandbox and everything in it is gone when the call returns.", "seed-001#kill_sandbox"
    ),
    "start_task": Requirement(
        "A command runs in the background and belongs to the sandbox; nothing is made for it.",
        "seed-000#background-tasks",
    ),
    "get_task": Requirement("State and output of a task, page by page, from any session.", "seed-000#background-tasks"),
    "cancel_task": Requirement("A task ends with everything that it started.", "seed-000#background-tasks"),
    "upload_file": Requirement(
        "Bytes arrive whole or not at all, in parts where they are many, and their hash comes back.",
        "seed-000#binary-transfer",
    ),
    "download_file": Requirement("Bytes come back exactly, in parts where they are many.", "seed-000#binary-transfer"),
    # new tools above this line
}


@dataclass(frozen=True)
class SeedLine:
    """A sentence of a seed document and the names of the tests that show it, or why none does."""

    sentence: str
    tests: tuple[str, ...]
    not_shown_because: str = ""


def _seed_lines() -> Mapping[str, SeedLine]:
    read = json.loads((TESTS / "seed_lines.json").read_text(encoding="utf-8"))
    return {line: SeedLine(entry["sentence"], tuple(entry["tests"])) for line, entry in read.items()}


SEED_LINES: Mapping[str, SeedLine] = _seed_lines()

# Sentences that no test can show, each with the reason. They count as open where something is still to be built.
NOT_SHOWN: Mapping[str, SeedLine] = {
    "000-108": SeedLine(
        "The Node CLI has its own implementation; its tool availability is reported separately, not assumed.",
        (),
        "There is no Node CLI: every server is the Python one, and nothing here says what another one lists.",
    ),
    "S+-334": SeedLine(
        "The gateway's authentication is mandatory; 16 MiB and 30 s are its limits.",
        (),
        "There is no gateway: the server of the tools is the manager itself. Sandboxes demand their tokens, which "
        "test_every_sandbox_demands_its_own_token shows.",
    ),
    "001-133": SeedLine(
        "The Node server exposes exactly the seven P0 tools.",
        (),
        "There is no Node server.",
    ),
}


@dataclass(frozen=True)
class Case:
    """A test function and the file that holds it."""

    name: str
    path: str


def cases(folder: Path = TESTS) -> Iterator[Case]:
    """Every test function below a folder, found without importing anything."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield Case(node.name, str(path.relative_to(folder)))


def faults_of(name: str) -> list[str]:
    """The fault rows that a test names: `test_t1_…` names T1, `test_m8_m9_…` names two."""
    match = _FAULT_TEST.match(name)
    return match[1].upper().split("_")[1:] if match else []


def shown_by(folder: Path = TESTS) -> Mapping[str, list[Case]]:
    """For each fault row that any test names, those tests."""
    found: dict[str, list[Case]] = {}
    for test in cases(folder):
        if test.path.startswith(_NO_FAULTS):
            continue
        for fault in faults_of(test.name):
            found.setdefault(fault, []).append(test)
    return found


def _report() -> str:
    """What is shown, counted; tests/architecture sees to it that nothing listed here is without a test."""
    shown = shown_by()
    of_faults = {(case.path, case.name) for row in FAULTS for case in shown.get(row, [])}
    documents: dict[str, list[SeedLine]] = {}
    for line, entry in SEED_LINES.items():
        documents.setdefault(line.rpartition("-")[0], []).append(entry)
    of_lines = {name for entry in SEED_LINES.values() for name in entry.tests}
    rows = [f"{'fault rows':<24}{len(FAULTS):>5}   shown by {len(of_faults):>4} tests"]
    for document, entries in sorted(documents.items()):
        title = "completing lines" if document == "S+" else f"lines of seed {document}"
        tests = len({name for entry in entries for name in entry.tests})
        rows.append(f"{title:<24}{len(entries):>5}   shown by {tests:>4} tests")
    rows.append(f"{'tools':<24}{len(TOOLS):>5}")
    rows.append(f"{'tests in all':<24}{sum(1 for _ in cases()):>5}   of which {len(of_lines):>4} show lines")
    rows += [f"not shown: {line:<13}{entry.not_shown_because}" for line, entry in NOT_SHOWN.items()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(_report())
