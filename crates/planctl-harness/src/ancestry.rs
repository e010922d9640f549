//! Tells whether a process was started by a worker or a contract, whatever it says of itself.
//!
//! Everything that planctl starts hangs below its helper, which is a sub-reaper: a process can leave its parent, and is
//! then the helper's child. So the chain of parents tells, where a variable of the environment could be unset (A34).

use std::path::Path;

/// The name that the helper gives itself, and that its guardians have from it.
pub(crate) const HELPER_NAME: &str = "planctl-spawn";
/// The longest chain of parents that is followed; a longer one is none that people make.
const GENERATIONS_MAX: usize = 512;

/// Says whether a process, or one of its parents, was started by planctl's helper; one that is gone was.
pub fn is_inside_worker(process: i32) -> bool {
    let mut process = process;
    for _ in 0..GENERATIONS_MAX {
        // Of a process that ended meanwhile nothing can be said, so it decides nothing.
        let Some((name, parent)) = name_and_parent(process) else { return true };
        if name == HELPER_NAME {
            return true;
        }
        if parent <= 1 {
            return false;
        }
        process = parent;
    }
    true
}

fn name_and_parent(process: i32) -> Option<(String, i32)> {
    let stat = std::fs::read(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in parentheses and may hold any character, a closing one too.
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_was_not_started_by_a_helper_and_one_that_is_gone_might_have_been() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(name_and_parent(own).map(|(_, parent)| parent > 0), Some(true));
        assert!(is_inside_worker(i32::MAX));
    }
}
