"""A server of the Model Context Protocol: programs and agents ask a store, and get the answers of the command line, small."""
