"""The convex problem of one node: envelopes of the losses and dual ascent."""
