"""All endpoints of the REST API."""

from holdfast.gateway.endpoint import Endpoint
from holdfast.gateway.rest.authorizations import AUTHORIZATION_ENDPOINTS
from holdfast.gateway.rest.batch_creation import BATCH_CREATION_ENDPOINTS
from holdfast.gateway.rest.batches import BATCH_LOOK_ENDPOINTS
from holdfast.gateway.rest.clock import CLOCK_ENDPOINTS
from holdfast.gateway.rest.definitions import DEFINITION_ENDPOINTS
from holdfast.gateway.rest.deployments import DEPLOYMENT_ENDPOINTS
from holdfast.gateway.rest.elements import ELEMENT_ENDPOINTS
from holdfast.gateway.rest.groups import GROUP_ENDPOINTS
from holdfast.gateway.rest.incidents import INCIDENT_ENDPOINTS
from holdfast.gateway.rest.instances import INSTANCE_ENDPOINTS
from holdfast.gateway.rest.job_search import JOB_SEARCH_ENDPOINTS
from holdfast.gateway.rest.jobs import JOB_ENDPOINTS
from holdfast.gateway.rest.members import MEMBER_ENDPOINTS
from holdfast.gateway.rest.messages import MESSAGE_ENDPOINTS
from holdfast.gateway.rest.modification import MODIFICATION_ENDPOINTS
from holdfast.gateway.rest.topology import TOPOLOGY_ENDPOINTS
from holdfast.gateway.rest.users import USER_ENDPOINTS
from holdfast.gateway.rest.variables import VARIABLE_ENDPOINTS

REST_ENDPOINTS: tuple[Endpoint, ...] = (
    *TOPOLOGY_ENDPOINTS,
    *DEPLOYMENT_ENDPOINTS,
    *DEFINITION_ENDPOINTS,
    *INSTANCE_ENDPOINTS,
    *MODIFICATION_ENDPOINTS,
    *ELEMENT_ENDPOINTS,
    *VARIABLE_ENDPOINTS,
    *JOB_ENDPOINTS,
    *JOB_SEARCH_ENDPOINTS,
    *MESSAGE_ENDPOINTS,
    *INCIDENT_ENDPOINTS,
    *BATCH_CREATION_ENDPOINTS,
    *BATCH_LOOK_ENDPOINTS,
    *CLOCK_ENDPOINTS,
    *USER_ENDPOINTS,
    *GROUP_ENDPOINTS,
    *MEMBER_ENDPOINTS,
    *AUTHORIZATION_ENDPOINTS,
)
