"""Proof files: what a fit claims, with evidence that anyone can check in exact arithmetic (see ``format.md``).

Tests: tests/proofs/.
"""
