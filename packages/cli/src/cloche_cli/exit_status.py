"""Exit statuses of `abx` itself.

A program that `abx run` or `abx exec` ran gives its own status instead. For an error of
the catalogue the catalogue says the status of its category.

Source: issue "The spine", item 8; the same numbers as the Node command line of the seeds.
"""

from typing import Final

OK: Final = 0
OTHER: Final = 1
USAGE: Final = 2  # with configuration
NOT_FOUND: Final = 4
TIMEOUT: Final = 5
