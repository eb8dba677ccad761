"""The review of an audit: a page on which a person decides, and the table corrected by these decisions.

Tests: tests/app/test_review.py.
"""

from .decisions import Decisions, confirmed, corrected, is_excel, log_beside, log_text, read_decisions
from .page import review_page

__all__ = [
    "Decisions",
    "confirmed",
    "corrected",
    "is_excel",
    "log_beside",
    "log_text",
    "read_decisions",
    "review_page",
]
