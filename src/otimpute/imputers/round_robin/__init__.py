"""Algorithm 3: one model per column."""
