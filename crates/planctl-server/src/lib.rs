//! Runs the loops; the only room where all doors meet.
