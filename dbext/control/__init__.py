"""Outside the server: command line, set-up, private clusters, worker. Read `cli` first."""
