"""`python -m cloche_mcp_stdio` is `sandbox-mcp`."""

import sys

from cloche_mcp_stdio.main import main

sys.exit(main())
