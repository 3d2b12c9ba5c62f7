"""Use cases, one file each: what a SQL function or a publication does from beginning to end."""
