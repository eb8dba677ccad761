"""Exact pricing: the monomials of largest reward."""
