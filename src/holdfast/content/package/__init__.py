"""Packages: some nodes of a tree with their properties and binaries, as one string of bytes."""
