"""Generated; do not edit. See schemas/."""
