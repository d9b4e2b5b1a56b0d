"""Who may do what: users, groups, roles, tokens and authorizations, the same on all partitions."""
