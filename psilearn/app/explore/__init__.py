"""The interactive explorer: one page where a mislabelled point is dragged and the boundaries respond.

Tests: tests/app/test_report.py, tests_browser/test_pages.py.
"""

from .page import explorer_html, explorer_page, two_clouds

__all__ = ["explorer_html", "explorer_page", "two_clouds"]
