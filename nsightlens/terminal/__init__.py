"""What is given to a terminal: commands to paste, text that cannot steer it, colours, and the one function that prints."""
