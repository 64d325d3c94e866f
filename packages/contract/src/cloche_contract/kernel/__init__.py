"""What every package shares and nobody generates: dispatch, validation, failures, Protocols between packages."""
