"""Algorithm 1: one parameter per missing value."""
