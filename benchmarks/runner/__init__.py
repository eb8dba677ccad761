"""What runs the benchmarks, and what they share: rows, timing, data."""
