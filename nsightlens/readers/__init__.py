"""File -> tables in our terms and units: the tuple of readers.

A reader is a module (or small package) with the names of `Reader`. It knows `schema` and `errors` and nothing else of ours.
"""
