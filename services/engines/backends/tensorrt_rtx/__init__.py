"""TensorRT for RTX: plans ahead of time on any host, runs them on an RTX GPU."""
