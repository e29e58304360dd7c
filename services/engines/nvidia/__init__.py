"""What TensorRT and TensorRT for RTX share: the driver's facts, plan building, plan running.

Their Python interfaces are one; which package stands behind is passed in as `trt`.
"""
