"""What limits a job: one judged window, a tree in which every nanosecond has one cause, and a verdict read off it.

Arrays of a profile (recorded) -> the window (window) -> five branches (branches) -> leaves (computing, copies, idle, ranks) ->
causes as values (verdict) -> sentences (words). What may be concluded at all comes first (conditions).
"""
