"""The file layer: bytes and text in, whole files out."""
