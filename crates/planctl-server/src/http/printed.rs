//! The last output of the holders of items, for watchers: kept in memory as long as an item is worked on.

use std::collections::HashMap;

use planctl_engine::ItemId;

/// How much of one item is kept.
const ITEM_BYTES_MAX: usize = 64 << 10;
/// How much of all items is kept; beyond, the item that has been silent for longest is forgotten.
const BYTES_MAX: usize = 16 << 20;

/// The output of workers, by item and generation of the lease.
#[derive(Default)]
pub(super) struct Printed {
    ends: HashMap<(ItemId, i64), End>,
    bytes: usize,
    /// How often something was added.
    added: u64,
}

struct End {
    text: String,
    added: u64,
}

impl Printed {
    pub(super) fn add(&mut self, item: &ItemId, generation: i64, text: &str) {
        self.added += 1;
        let end = self
            .ends
            .entry((item.clone(), generation))
            .or_insert_with(|| End { text: String::new(), added: 0 });
        self.bytes -= end.text.len();
        end.added = self.added;
        end.text.push_str(text);
        let surplus = end.text.len().saturating_sub(ITEM_BYTES_MAX);
        let start = (surplus..=end.text.len()).find(|at| end.text.is_char_boundary(*at)).unwrap_or(0);
        end.text.drain(..start);
        self.bytes += end.text.len();
        while self.bytes > BYTES_MAX {
            let silent = self.ends.iter().min_by_key(|(_, end)| end.added).map(|(lease, _)| lease.clone());
            let Some(end) = silent.and_then(|lease| self.ends.remove(&lease)) else { return };
            self.bytes -= end.text.len();
        }
    }

    /// Returns the end of the output of an item's newest holder.
    pub(super) fn of(&self, item: &ItemId) -> Option<String> {
        let of_item = self.ends.iter().filter(|((of, _), _)| of == item);
        of_item.max_by_key(|((_, generation), _)| *generation).map(|(_, end)| end.text.clone())
    }

    /// Forgets an item on which nobody works any more.
    pub(super) fn forget(&mut self, item: &ItemId) {
        let bytes = &mut self.bytes;
        self.ends.retain(|(of, _), end| {
            let stays = of != item;
            *bytes -= if stays { 0 } else { end.text.len() };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: usize) -> ItemId {
        ItemId::new(format!("item-{number}"))
    }

    #[test]
    fn b10_1_an_item_that_ended_is_forgotten_and_many_that_did_not_share_a_bound() {
        let mut printed = Printed::default();
        printed.add(&item(0), 1, "first ");
        printed.add(&item(0), 2, "ä");
        printed.add(&item(0), 2, &"x".repeat(ITEM_BYTES_MAX - 1));
        assert_eq!(printed.of(&item(0)).unwrap(), "x".repeat(ITEM_BYTES_MAX - 1), "no part of a character");
        printed.forget(&item(0));
        assert_eq!((printed.of(&item(0)), printed.bytes, printed.ends.len()), (None, 0, 0));

        let text = "x".repeat(ITEM_BYTES_MAX);
        let most = BYTES_MAX / ITEM_BYTES_MAX;
        (0..most).for_each(|number| printed.add(&item(number), 1, &text));
        printed.add(&item(0), 1, "y");
        printed.add(&item(most), 1, &text);
        assert!(printed.bytes <= BYTES_MAX);
        assert_eq!(printed.of(&item(1)), None, "it was silent for longest");
        assert!(printed.of(&item(0)).is_some_and(|text| text.ends_with('y')));
        assert!(printed.of(&item(2)).is_some() && printed.of(&item(most)).is_some());
    }
}
