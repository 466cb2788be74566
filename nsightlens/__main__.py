"""python -m nsightlens: the command line."""

from nsightlens.cli import main

main()
