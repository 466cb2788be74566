"""The documentation site: pages that are built from docs/, from the views and from the bundled run."""
