"""The views and analyses that can be asked for, and the books that they keep."""
