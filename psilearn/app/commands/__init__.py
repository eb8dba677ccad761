"""The commands, one file per group.

Tests: tests/app/test_cli.py, tests/proofs/test_proof_commands.py.
"""
