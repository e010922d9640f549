//! Links the debug build to a fixed address.
//!
//! A position-independent program has 360,000 addresses to set before it begins, which is a quarter of the time of a short command
//! in a debug build. Tests start thousands of those. A release stays independent of its position.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        println!("cargo:rustc-link-arg-tests=-no-pie");
    }
}
