"""Solvers of convex problems, and the d.c. loop that solves a sequence of them."""
