"""Object stores behind the `ObjectStore` port: a folder, and S3. `open.py` picks one by its URL.

One conformance suite (`tests/infra/objects/test_conformance.py`) runs against both.
"""
