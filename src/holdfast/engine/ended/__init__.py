"""What ended lately: read from the end of the log when somebody asks, bounded by age and count."""
