"""`holdfast backup` and `holdfast restore`."""
