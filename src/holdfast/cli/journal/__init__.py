"""`holdfast journal`: the log on the screen."""
