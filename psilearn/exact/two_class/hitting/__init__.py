"""Search by implicit hitting sets."""
