"""What every package shares and nobody generates: dispatch, validation, failures, and the Protocols between packages."""
