//! Every seed that once failed is played again.

use planctl_sim::play;

#[test]
fn seeds_that_once_failed_keep_every_promise() {
    let seeds: Vec<u64> = include_str!("seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let number = line.split_whitespace().next().unwrap_or_default();
            number.parse().unwrap_or_else(|_| panic!("seeds.txt: a line begins with a seed: {line:?}"))
        })
        .collect();
    assert!(!seeds.is_empty(), "seeds.txt has seeds");
    for seed in seeds {
        let first = play(seed).unwrap_or_else(|breach| panic!("{breach}"));
        let again = play(seed).unwrap_or_else(|breach| panic!("{breach}"));
        assert_eq!(first.lines, again.lines, "seed {seed} tells the same each time");
    }
}
