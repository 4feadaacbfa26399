"""A table before the first step: its working copy, where values start, how rows are compared."""
