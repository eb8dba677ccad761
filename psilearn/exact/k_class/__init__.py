"""Exact search for more than two classes."""
