//! Finds the lowest region with enough room.
#![forbid(unsafe_code)]

/// The rooms of the regions as the leaves of a tree; each inner node holds the greater of its two children.
///
/// ```text
///  1:                8
///  2:        8               5
///  4:    0       8       5       2         leaves 4.. are regions 0..
/// ```
/// To find room for 3: down from the root, to the left wherever the left child has 3 or more.
///
/// While one region has room and no other has, it is kept beside the tree: the usual state of a vector of blocks, in
/// which nothing depends on their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms {
    /// Twice as many as there are leaves, a power of two. Node 0 is not used. Empty until there is a region.
    nodes: Vec<u64>,
    /// The only region that has room, and how much; all of the tree is 0 then.
    only: Option<(usize, u64)>,
}

impl Rooms {
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Makes leaves for at least `regions` regions.
    pub(super) fn grow(&mut self, regions: usize) {
        let (old, new) = (self.leaves(), regions.next_power_of_two());
        if new <= old {
            return;
        }
        let mut nodes = vec![0; 2 * new];
        for (leaf, &room) in nodes.iter_mut().skip(new).zip(self.nodes.iter().skip(old)) {
            *leaf = room;
        }
        for node in (1..new).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        self.nodes = nodes;
    }

    /// The room of a region, 0 for none.
    pub(super) fn room(&self, region: usize) -> u64 {
        match self.only {
            Some((only, room)) if only == region => room,
            _ => self.nodes.get(self.leaves() + region).copied().unwrap_or(0),
        }
    }

    /// Sets the room of a region that [`Rooms::grow`] made a leaf for.
    pub(super) fn set(&mut self, region: usize, room: u64) {
        match self.only {
            Some((only, _)) if only == region => self.only = (room != 0).then_some((region, room)),
            // All others have none already.
            Some(_) if room == 0 => {}
            Some((only, its)) => {
                self.only = None;
                self.set_leaf(only, its);
                self.set_leaf(region, room);
            }
            None if room != 0 && self.greatest() == 0 => self.only = Some((region, room)),
            None => self.set_leaf(region, room),
        }
    }

    fn set_leaf(&mut self, region: usize, room: u64) {
        let mut node = self.leaves() + region;
        self.nodes[node] = room;
        while node > 1 {
            let greater = self.nodes[node].max(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == greater {
                break;
            }
            self.nodes[node] = greater;
        }
    }

    /// The greatest room.
    pub(super) fn greatest(&self) -> u64 {
        match self.only {
            Some((_, room)) => room,
            None => self.nodes.get(1).copied().unwrap_or(0),
        }
    }

    /// The lowest region with room for `size`, which is not 0.
    pub(super) fn lowest(&self, size: u64) -> Option<usize> {
        if self.greatest() < size {
            return None;
        }
        if let Some((only, _)) = self.only {
            return Some(only);
        }
        let mut node = 1;
        while node < self.leaves() {
            node *= 2;
            if self.nodes[node] < size {
                node += 1;
            }
        }
        Some(node - self.leaves())
    }

    /// Bytes of host memory held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<u64>()
    }

    /// Asserts L8 of the engine.
    pub(super) fn validate(&self) {
        if self.only.is_some() {
            assert_eq!(self.nodes.get(1), Some(&0), "L8: two regions have room, and one is beside the tree");
        }
        for node in 1..self.leaves() {
            let greater = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            assert_eq!(self.nodes[node], greater, "L8: node {node} is not the greater of its children");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_kept_beside_the_tree() {
        let mut rooms = Rooms::default();
        rooms.grow(4);
        for (region, room, lowest) in [
            (2, 5, Some(2)),
            (1, 0, Some(2)),
            (2, 7, Some(2)),
            (3, 9, Some(2)),
            (2, 0, Some(3)),
            (3, 0, None),
            (0, 5, Some(0)),
        ] {
            rooms.set(region, room);
            rooms.validate();
            assert_eq!(rooms.room(region), room);
            assert_eq!(rooms.lowest(5), lowest);
        }
        assert_eq!((rooms.lowest(6), rooms.greatest()), (None, 5));
    }

    #[test]
    fn finds_the_lowest() {
        let mut rooms = Rooms::default();
        assert_eq!((rooms.lowest(1), rooms.greatest(), rooms.room(3)), (None, 0, 0));
        for (region, room) in [3, 8, 5, 8, 1].into_iter().enumerate() {
            rooms.grow(region + 1);
            rooms.set(region, room);
            rooms.validate();
        }
        let found = |rooms: &Rooms| [1, 3, 4, 5, 6, 8, 9].map(|size| rooms.lowest(size));
        assert_eq!(found(&rooms), [Some(0), Some(0), Some(1), Some(1), Some(1), Some(1), None]);
        rooms.set(1, 0);
        rooms.validate();
        assert_eq!(found(&rooms), [Some(0), Some(0), Some(2), Some(2), Some(3), Some(3), None]);
        rooms.set(3, 0);
        rooms.set(0, 0);
        rooms.validate();
        assert_eq!(found(&rooms), [Some(2), Some(2), Some(2), Some(2), None, None, None]);
        assert_eq!(rooms.greatest(), 5);
    }
}
