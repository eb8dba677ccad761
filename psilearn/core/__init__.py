"""The mathematics: losses, penalties, the objective and its dual, spaces of functions, results and their claims.

Tests: tests/core/.
"""
