"""The reference service: a written or spoken request finds the picture that fits it."""
