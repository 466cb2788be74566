"""The registry of views and analyses, and the sums that their breakdowns must keep."""
