"""The state of a partition as all domains see it."""

from holdfast.engine.batch.state import Batches
from holdfast.engine.distribution.state import Distributions
from holdfast.engine.due.dates import DueDates
from holdfast.engine.ended.state import RecentlyEnded
from holdfast.engine.identity.state import Identities
from holdfast.engine.incidents.state import Incidents
from holdfast.engine.jobs.state import Jobs
from holdfast.engine.messages.state import Messages
from holdfast.engine.parcels.state import Parcels
from holdfast.engine.processes.state import Processes
from holdfast.engine.requests.state import Requests
from holdfast.engine.timers.state import Schedules
from holdfast.engine.transactions.state import Transactions
from holdfast.state import PartitionState


class EngineState:
    """One attribute a domain; each domain's appliers change their own and may use the others'."""

    def __init__(self, partition: PartitionState, partitions: int) -> None:
        self.partitions = partitions  # how many the node has; fixed for ever
        self.due = DueDates(partition)
        self.jobs = Jobs(partition, self.due)
        self.incidents = Incidents(partition)
        self.schedules = Schedules(partition, self.due)
        self.processes = Processes(partition)
        self.messages = Messages(partition, self.due)
        self.parcels = Parcels(partition, self.due)
        self.distributions = Distributions(partition, self.due)
        self.batches = Batches(partition)
        self.identities = Identities(partition)
        self.requests = Requests(partition, self.due)
        self.transactions = Transactions(partition, self.due)
        self.ended = RecentlyEnded()  # no rows: what was read of the log for those who ask
