"""What a node counts and measures. The only room that imports prometheus_client.

The hot paths count in plain integers; Prometheus' own objects are made when somebody asks.
"""

from holdfast.metrics.content import (
    NO_NUMBERS,
    ContentMetrics,
    ContentNumbers,
    DeliveryNumbers,
    ImportNumbers,
)
from holdfast.metrics.engine import (
    BatchMetrics,
    BatchNumbers,
    DistributionGauges,
    DistributionMetrics,
    TransactionGauges,
    TransactionMetrics,
)
from holdfast.metrics.groups import GroupNumbers
from holdfast.metrics.members import merged
from holdfast.metrics.node import ClockNumbers, Metrics, PipelineLag
from holdfast.metrics.storage import DiskNumbers, HttpMetrics, StorageMetrics
from holdfast.metrics.work import WorkerGauges, WorkGauges, WorkMetrics

__all__ = [
    "NO_NUMBERS", "BatchMetrics", "BatchNumbers", "ClockNumbers", "ContentMetrics",
    "ContentNumbers", "DeliveryNumbers", "DiskNumbers", "DistributionGauges",
    "DistributionMetrics", "GroupNumbers", "HttpMetrics", "ImportNumbers", "Metrics",
    "PipelineLag", "StorageMetrics", "TransactionGauges", "TransactionMetrics", "WorkGauges",
    "WorkMetrics", "WorkerGauges", "merged",
]  # fmt: skip
