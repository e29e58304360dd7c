"""ONNX Runtime on the CPU: the reference backend."""
