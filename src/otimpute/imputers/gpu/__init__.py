"""The same comparisons on a GPU."""
