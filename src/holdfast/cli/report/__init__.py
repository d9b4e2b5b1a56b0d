"""`holdfast report`: figures and pictures from the tables."""
