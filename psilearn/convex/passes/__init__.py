"""Convex problems on data in blocks: a few passes, each one map over the blocks and one small sum."""
