"""TensorRT 11.x: builds and runs on a host with an NVIDIA GPU."""
