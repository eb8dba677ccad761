"""The label audit: which labels of a table are wrong, how many, and why one should think so.

Tests: tests/app/test_audit.py, tests/app/test_audit_parts.py.
"""

from .issues import find_label_issues

__all__ = ["find_label_issues"]
