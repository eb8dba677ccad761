"""One algorithm per file; :mod:`.registry` knows them by name and chooses."""
