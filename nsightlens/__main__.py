"""python -m nsightlens: the command line."""

from nsightlens.cli import main

if __name__ == "__main__":  # workers of MPI import this module, too
    main()
