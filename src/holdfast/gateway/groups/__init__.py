"""Groups that share partitions: sessions, the sync log, and what operators see and do."""
