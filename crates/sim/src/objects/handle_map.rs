//! Objects by handle, in the order of the handles.
//!
//! A [`BTreeMap`] of each kind of object would be a third of the code of this crate, which every build compiles. These
//! maps share the code of one index.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use ash::vk::Handle;

/// A map from handles to objects.
pub(crate) struct HandleMap<K, V> {
    /// Positions in `entries`, by handle.
    index: BTreeMap<u64, usize>,
    entries: Vec<Option<(K, V)>>,
    /// Positions of entries that are `None`.
    vacant: Vec<usize>,
}

impl<K, V> Default for HandleMap<K, V> {
    fn default() -> Self {
        Self { index: BTreeMap::new(), entries: Vec::new(), vacant: Vec::new() }
    }
}

impl<K: Handle + Copy, V> HandleMap<K, V> {
    /// Sets the object of a handle.
    pub(crate) fn insert(&mut self, handle: K, object: V) {
        if let Some(present) = self.get_mut(&handle) {
            *present = object;
            return;
        }
        let entry = Some((handle, object));
        let position = self.vacant.pop().unwrap_or(self.entries.len());
        match self.entries.get_mut(position) {
            Some(vacant) => *vacant = entry,
            None => self.entries.push(entry),
        }
        self.index.insert(handle.as_raw(), position);
    }

    pub(crate) fn get(&self, handle: &K) -> Option<&V> {
        let position = *self.index.get(&handle.as_raw())?;
        self.entries.get(position)?.as_ref().map(|(_, object)| object)
    }

    pub(crate) fn get_mut(&mut self, handle: &K) -> Option<&mut V> {
        let position = *self.index.get(&handle.as_raw())?;
        self.entries.get_mut(position)?.as_mut().map(|(_, object)| object)
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn contains_key(&self, handle: &K) -> bool {
        self.index.contains_key(&handle.as_raw())
    }

    pub(crate) fn remove(&mut self, handle: &K) -> Option<V> {
        let position = self.index.remove(&handle.as_raw())?;
        self.vacant.push(position);
        self.entries.get_mut(position)?.take().map(|(_, object)| object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.index.values().filter_map(|&position| self.entries.get(position)?.as_ref());
        entries.map(|(handle, object)| (handle, object))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(handle, _)| handle)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, object)| object)
    }
}

/// A set of handles.
#[derive(Debug, Clone)]
pub(crate) struct HandleSet<K>(BTreeSet<u64>, PhantomData<K>);

impl<K> Default for HandleSet<K> {
    fn default() -> Self {
        Self(BTreeSet::new(), PhantomData)
    }
}

impl<K: Handle> HandleSet<K> {
    /// Returns false if the set has the handle already.
    pub(crate) fn insert(&mut self, handle: K) -> bool {
        self.0.insert(handle.as_raw())
    }

    pub(crate) fn remove(&mut self, handle: K) {
        self.0.remove(&handle.as_raw());
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = K> {
        self.0.iter().copied().map(K::from_raw)
    }
}

impl<K: Handle> Extend<K> for HandleSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, handles: I) {
        self.0.extend(handles.into_iter().map(K::as_raw));
    }
}
