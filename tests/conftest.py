"""What all tests have in common."""

import os

# Spark starts a Java for every pipeline that a test runs in a process of its own. None of them
# lives long enough to gain from Java's second compiler, which costs as much as all the rest.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
