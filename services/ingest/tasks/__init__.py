"""Tasks of child processes (see services/children): what touches the bytes of strangers."""
