"""Did it become slower? A gate: figures of recordings, a verdict for each question, and what forbids to compare.

A recording is one execution; its steps give it one figure and are no replicates. `recordings` reads the figures, `questions`
judges them, `comparable` says what forbids a comparison, `check` puts them together with the cause, `words` says it.
"""
