"""Content repositories: trees of nodes with typed properties and binaries."""
