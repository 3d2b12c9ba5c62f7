"""The demo: a year of data replayed into a tracked table and published privately every night."""
