"""Keys behind the `Signer` and `Verifier` ports: Ed25519 keys in files (0600) of this machine."""
