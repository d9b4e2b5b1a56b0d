"""Another number of processes for a stopped node: its partitions are divided anew.

The new division is built beside the old one and checked (`building`), takes effect at once
(`switching`), and then the old one is removed.
"""

from holdfast.rebalancing.command import Rebalanced, Total, rebalance

__all__ = ["Rebalanced", "Total", "rebalance"]
