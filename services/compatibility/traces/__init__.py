"""What a version computes on its way, seen by hooks: on torch modules, ONNX nodes, OpenVINO's."""
