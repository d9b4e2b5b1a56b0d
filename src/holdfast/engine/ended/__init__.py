"""What ended recently: read from the end of the log on request, bounded by age and count."""
