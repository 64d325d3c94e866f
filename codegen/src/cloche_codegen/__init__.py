"""The generator: `schemas/` in, every committed `_gen` folder and `docs/reference` out."""
