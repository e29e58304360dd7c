"""What a child process can do: one module per task, each with `REQUEST` and `run`."""
