"""Text for people: tables and pages that fit a width, for the command line and for Python."""
