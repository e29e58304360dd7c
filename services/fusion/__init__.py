"""From several branches to one answer: adapters into a common space, policies, the mean."""
