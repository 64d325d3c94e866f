"""From words to a command, and from any outcome to one exit status."""

import os
import sys
from collections.abc import Sequence

import click

from cloche_cli.exit_status import USAGE
from cloche_cli.failure import report_internal, report_known, report_usage
from cloche_cli.invocation import Invocation, ReaderGone
from cloche_cli.root import abx


def launch(words: Sequence[str]) -> int:
    """Parse the words, run the command, report a failure on stderr."""
    _survive_odd_text()
    invocation = Invocation(json_seen=_asks_for_json(words))
    try:
        outcome = abx.main(list(words), prog_name="abx", standalone_mode=False, obj=invocation)
    except click.exceptions.NoArgsIsHelpError as request:
        sys.stderr.write(request.format_message() + "\n")
        return USAGE
    except click.UsageError as error:
        return report_usage(error, invocation)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.Exit as request:
        return request.exit_code
    except ReaderGone:
        return _reader_went_away()
    except Exception as error:  # noqa: BLE001 - the process entry: whatever it is becomes one line and a status
        return report_known(error, invocation) or report_internal(error, invocation)
    return outcome if isinstance(outcome, int) else 0


def _asks_for_json(words: Sequence[str]) -> bool:
    """Decides only the form of a usage error: the options themselves are parsed by click."""
    before_program = words[: words.index("--")] if "--" in words else words
    return "--json" in before_program


def _survive_odd_text() -> None:
    """A program's output may hold characters that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _reader_went_away() -> int:
    # Python flushes stdout once more at exit; give it a place that accepts everything.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13
