"""The command and what it shows: tables, comparison, label audit, report, explorer.

Tests: tests/app/.
"""
