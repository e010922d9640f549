//! Holds no code. Its dependencies have the features with which the tests are built, so that a build of the binary alone compiles none of
//! them a second time.
