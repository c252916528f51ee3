"""The numerical core: arrays in, arrays out; no input or output, no clock, no global state."""
