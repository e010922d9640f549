//! The words a person types.

fn main() {}
