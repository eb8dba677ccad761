"""Exact search for two classes."""
