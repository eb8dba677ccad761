"""Newton's method on smoothed hinges."""
