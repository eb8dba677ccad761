"""Audit of labels."""
