"""`holdfast batch`: changes to many tasks or instances at once."""
