"""Complete services built from real encoders and real media, to run, to read and to start from."""
