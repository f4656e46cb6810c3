//! A queue with contiguous contents, so that they can be walked as one slice.

/// First in, first out.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Items before `head` have left the queue.
    items: Vec<T>,
    head: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { items: Vec::new(), head: 0 }
    }
}

impl<T: Copy> Queue<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { items: Vec::with_capacity(capacity), head: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.head
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items, oldest first.
    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        self.items.get(self.head..).unwrap_or_default()
    }

    /// All items, oldest first.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        self.items.get_mut(self.head..).unwrap_or_default()
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.make_room(1);
        self.items.push(item);
    }

    #[inline]
    pub(super) fn extend(&mut self, items: impl Iterator<Item = T>) {
        self.make_room(items.size_hint().0);
        self.items.extend(items);
    }

    #[inline]
    pub(super) fn drop_front(&mut self, count: usize) {
        self.head += count;
        if self.head >= self.items.len() {
            self.items.clear();
            self.head = 0;
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.items.truncate(self.head + length);
    }

    /// Moves the items to the front instead of growing. This is rare: a queue is usually emptied before it is full, and that costs
    /// nothing.
    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.head > 0 && self.items.len() + count > self.items.capacity() {
            self.items.drain(..self.head);
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((0..3_u8, 0..9_usize), 0..100)) {
            let mut queue = Queue::with_capacity(4);
            let mut expected: VecDeque<usize> = VecDeque::new();
            for (number, (step, count)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        queue.extend((0..count).map(|at| number + at));
                        expected.extend((0..count).map(|at| number + at));
                    }
                    1 => {
                        let count = count.min(expected.len());
                        queue.drop_front(count);
                        expected.drain(..count);
                    }
                    _ => {
                        let length = expected.len().saturating_sub(count);
                        queue.truncate(length);
                        expected.truncate(length);
                        queue.push(number);
                        expected.push_back(number);
                    }
                }
                prop_assert_eq!(queue.as_slice(), &*expected.make_contiguous());
                prop_assert_eq!((queue.len(), queue.is_empty()), (expected.len(), expected.is_empty()));
            }
        }
    }

    #[test]
    fn it_does_not_grow_while_there_is_room() {
        let mut queue = Queue::with_capacity(8);
        queue.extend(0..8);
        for item in 8..1000 {
            queue.drop_front(1);
            queue.push(item);
        }
        assert_eq!(queue.items.capacity(), 8);
    }
}
