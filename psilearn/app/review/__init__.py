"""The review of an audit: a page on which a person decides, and the table corrected by these decisions.

Tests: tests/app/test_review.py.
"""

from .decisions import (
    Decisions,
    Settled,
    corrected,
    corrected_name,
    is_excel,
    log_beside,
    log_text,
    read_decisions,
    settled_before,
)
from .page import review_page

__all__ = [
    "Decisions",
    "Settled",
    "corrected",
    "corrected_name",
    "is_excel",
    "log_beside",
    "log_text",
    "read_decisions",
    "review_page",
    "settled_before",
]
