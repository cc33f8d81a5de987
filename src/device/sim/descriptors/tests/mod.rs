//! Descriptors of the simulated device: what they hold, how pools end, and what is reported.
