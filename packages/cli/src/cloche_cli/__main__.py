"""`python -m cloche_cli` is `abx`."""

import sys

from cloche_cli.main import main

sys.exit(main())
