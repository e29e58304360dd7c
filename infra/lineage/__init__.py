"""Lineage for other tools: graphs as OpenLineage events, and the events sent to their server."""
