"""The cluster: who its members are, who owns what, and what can be done about it."""
