"""Superset on a free port that the kernel chose, which is printed last (run by Superset's own Python)."""

import os

from superset.app import create_app
from werkzeug.serving import make_server

server = make_server("127.0.0.1", 0, create_app(), threaded=True)
print("port", server.port, flush=True)
os.dup2(2, 1)  # nobody reads on
server.serve_forever()
