"""Generators of the papers' simulations and loaders of their data."""
