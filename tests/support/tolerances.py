"""Errors that sums may have, relative rms against float64, stated once: by engine and precision.

Another engine's tests need nothing but its line here.
"""

#: A map of pairs: float32 in and out, so that no precision does better than its rounding.
PAIRS = {
    "cpu": {"single": 1e-6, "compensated": 1e-7, "double": 1e-7},
    "cuda": {"single": 3e-6, "compensated": 1e-6, "double": 1e-7},
}

#: The field of such a map.
FIELD = {
    "cpu": {"single": 1e-5, "compensated": 2e-7, "double": 2e-7},
    "cuda": {"single": 1e-5, "compensated": 5e-6, "double": 2e-7},
}

#: A map of any interaction, with exp, erfc and roots in it.
ANY_INTERACTION = {
    "cpu": {"single": 2e-6, "double": 1e-7},
    "cuda": {"single": 5e-6, "double": 1e-7},
}
