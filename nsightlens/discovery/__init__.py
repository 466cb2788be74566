"""A run directory -> its files, the profiles they form, whose they are, and vendor reports turned into exports."""
