"""REST: the Open Inference Protocol v2, `/v1/answer`, `/metrics`. Translation only."""
