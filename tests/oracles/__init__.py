"""Slow, plain answers from outside the solvers, and the samples they are asked about."""
