//! File work of async code, kept from holding up the runtime's other tasks.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does file work that its caller waits for. The other tasks of this thread go on in another one meanwhile, so a file system that
/// hangs holds up nobody else.
///
/// The work borrows what it needs, and a caller that is dropped leaves nothing behind that still writes. `spawn_blocking` is for
/// work that takes long.
pub fn blocking_in_place<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    match runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}
