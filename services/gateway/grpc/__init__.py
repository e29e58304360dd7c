"""gRPC: the Open Inference Protocol v2, `modalgate.v1`, the standard health service.

`*_pb2.py` and `.pyi` are generated from the `.proto` files beside them: `python -m
services.gateway.grpc.generate`. A process can hold one definition of `inference.*` only: clients
that bring their own (Triton's, KServe's) run in another process than this server.
"""
