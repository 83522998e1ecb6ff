"""Settings of a small network that the tests train."""

# Convolutions of this size take the Fourier form in batches of 16 and more, like those of the real network.
SMALL = {
    "trunk_options": {"channels": 16},
    "primary_options": {"types": 2, "dim": 4},
    "decoder_hidden": [16, 24],
}
