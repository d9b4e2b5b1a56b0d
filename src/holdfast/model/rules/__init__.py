"""The rules that a definition keeps, by what they are about. `model/check.py` asks them all."""
