"""Algorithm 2: one torch module completes rows."""
