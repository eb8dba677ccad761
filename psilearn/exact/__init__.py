"""Exact search: proved global optima of truncated losses. README.md beside this file is the map.

Tests: tests/exact/.
"""
