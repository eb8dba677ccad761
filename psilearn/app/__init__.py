"""The command and what it shows: tables, comparison, label audit, report, explorer."""
