"""Users, groups, roles, tokens and what they may do."""
