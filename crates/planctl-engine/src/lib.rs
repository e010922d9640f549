//! Decides what happens next in a run: pure, without clock, randomness or IO.
