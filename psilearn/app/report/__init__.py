"""The report: one HTML file that opens offline, and how pages of this package are made.

Tests: tests/app/test_report.py.
"""

from .page import report_page

__all__ = ["report_page"]
