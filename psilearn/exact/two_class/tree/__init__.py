"""Branch and bound over samples that are believed or given up."""
