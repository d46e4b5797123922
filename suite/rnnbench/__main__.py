"""`python -m rnnbench`."""

from rnnbench.cli import main

main()
