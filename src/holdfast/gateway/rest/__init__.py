"""The Orchestration Cluster REST API v2: its shapes, resource by resource, over the same Api."""
