"""From a source (torch factory or ONNX file) to one checked ONNX file with stable bytes."""
