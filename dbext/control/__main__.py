"""`python -m dbext.control` is the command line."""

from dbext.control.cli import main

main()
