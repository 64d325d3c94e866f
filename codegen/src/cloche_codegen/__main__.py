"""`python -m cloche_codegen build | check | new-tool SET NAME`."""

import argparse
import sys
from pathlib import Path

from cloche_codegen import newtool
from cloche_codegen.load import SchemaError
from cloche_codegen.plan import outputs, roots
from cloche_codegen.write import compare, write


def _repository() -> Path:
    """The folder that holds schemas/, from here or from where this file is."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "schemas" / "CONTRACT_VERSION").is_file():
                return folder
    raise SchemaError("no schemas/ folder here or above")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cloche_codegen", description=__doc__)
    parser.add_argument("--repository", type=Path, default=None, help="root of the repository; found when left out")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="write everything that comes from schemas/")
    commands.add_parser("check", help="name every file that is not as schemas/ say; exit code 1 when there is one")
    tool = commands.add_parser("new-tool", help="start a tool: a schema that passes, its place in the order")
    tool.add_argument("set")
    tool.add_argument("name")
    return parser.parse_args()


def main() -> int:
    """Run one command; the exit code is 1 when something differs or breaks a rule."""
    arguments = _arguments()
    try:
        repository = (arguments.repository or _repository()).resolve()
        if arguments.command == "new-tool":
            for path in newtool.create(repository, arguments.set, arguments.name):
                print(path.relative_to(repository))
            print("Edit the schema, run: python -m cloche_codegen build, then add one method to the tool set.")
            return 0
        planned = outputs(repository)
    except SchemaError as exc:
        print(exc, file=sys.stderr)
        return 1
    act = write if arguments.command == "build" else compare
    findings = act(repository, planned, roots(repository))
    for finding in findings:
        print(finding)
    if arguments.command == "check" and findings:
        print(f"{len(findings)} files differ from the schemas; run: python -m cloche_codegen build", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
