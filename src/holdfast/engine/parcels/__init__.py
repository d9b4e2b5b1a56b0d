"""Parcels: commands from one partition to another, each processed once and in order."""
