"""Pairs of batches of rows, and the divergence between them."""
