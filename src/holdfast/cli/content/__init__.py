"""`holdfast content`: publish trees of files, subscribe to them, see and steer who is how far."""
