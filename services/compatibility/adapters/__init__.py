"""Adapters from a new encoder version's space into the old one's.

Fitted on pairs in a child process (`fitting`), measured on held-out pairs, stored as an engine
(`building`), registered under the two encoders' fingerprints (`register`), applied (`applying`).
"""
