"""Search over the sets of violated samples, for the hard margin."""
