"""Rules for people: a score card, and a form that says what would change an answer.

Tests: tests/app/test_cards.py.
"""

from .card import ScoreCard, score_card
from .form import what_if_form

__all__ = ["ScoreCard", "score_card", "what_if_form"]
