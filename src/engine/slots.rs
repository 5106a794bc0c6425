//! Places for calls in flight, whose number may change at any time. Fewer places cut no call short: they go as calls end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

#[derive(Debug)]
pub struct Slots {
    semaphore: Semaphore,
    size: Mutex<Size>,
}

#[derive(Debug)]
struct Size {
    wanted: usize,
    /// Places in use that are to go once they are free.
    surplus: usize,
}

/// A place, free again when dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a Slots,
    permit: Option<SemaphorePermit<'a>>,
}

impl Slots {
    pub fn new(wanted: usize) -> Self {
        Self { semaphore: Semaphore::new(wanted), size: Mutex::new(Size { wanted, surplus: 0 }) }
    }

    /// `None` never comes while the slots live.
    pub async fn acquire(&self) -> Option<Slot<'_>> {
        let permit = self.semaphore.acquire().await.ok()?;
        Some(Slot { slots: self, permit: Some(permit) })
    }

    pub fn resize(&self, wanted: usize) {
        let mut size = self.size();
        if wanted >= size.wanted {
            let more = wanted - size.wanted;
            let kept = more.min(size.surplus);
            size.surplus -= kept;
            self.semaphore.add_permits(more - kept);
        } else {
            let fewer = size.wanted - wanted;
            size.surplus += fewer - self.semaphore.forget_permits(fewer);
        }
        size.wanted = wanted;
    }

    fn size(&self) -> MutexGuard<'_, Size> {
        self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut size = self.slots.size();
        if size.surplus > 0
            && let Some(permit) = self.permit.take()
        {
            size.surplus -= 1;
            permit.forget();
        }
        // Given back under the lock, so that a resize counts it once.
        self.permit = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(slots: &Slots) -> usize {
        slots.semaphore.available_permits()
    }

    #[tokio::test]
    async fn fewer_places_go_as_calls_end_and_more_come_at_once() {
        let slots = Slots::new(3);
        let (one, two) = (slots.acquire().await.unwrap(), slots.acquire().await.unwrap());
        slots.resize(1);
        assert_eq!(free(&slots), 0);
        drop(one);
        assert_eq!(free(&slots), 0, "the second call still holds the one place");
        drop(two);
        assert_eq!(free(&slots), 1);

        let held = slots.acquire().await.unwrap();
        slots.resize(4);
        assert_eq!(free(&slots), 3);
        slots.resize(1);
        slots.resize(2);
        drop(held);
        assert_eq!(free(&slots), 2);
    }
}
