"""Who computes: one contract, several kernels. The maths is in README.md."""
