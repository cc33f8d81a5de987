//! Tokens of short-lived threads. Other tests of the same process take tokens too, so the tests do not expect specific
//! ones.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use crate::base::sync::thread_token::{TOKENS, current};

#[test]
fn a_thread_keeps_its_token() {
    let token = current();
    assert!(token < TOKENS);
    assert!((0..100).all(|_| current() == token));
}

#[test]
fn living_threads_have_tokens_of_their_own() {
    const THREADS: usize = 40;
    let all_have_one = Barrier::new(THREADS);
    let tokens = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                tokens.lock().unwrap().insert(current());
                all_have_one.wait();
            });
        }
    });
    assert_eq!(tokens.lock().unwrap().len(), THREADS);
}

#[test]
fn ten_thousand_short_lives_do_not_use_up_the_tokens() {
    let seen: BTreeSet<u32> = (0..10_000).map(|_| thread::spawn(current).join().unwrap()).collect();
    // One at a time; the others belong to tests that run concurrently.
    assert!(seen.len() < 200, "{} tokens", seen.len());
    assert!(seen.iter().all(|token| *token < 400), "{:?}", seen.last());
}

/// Asks for the token when it is destroyed, as an allocator in a thread-local variable would.
struct AsksLate(Cell<Option<Arc<Mutex<Vec<u32>>>>>);

impl Drop for AsksLate {
    fn drop(&mut self) {
        if let Some(answers) = self.0.take() {
            answers.lock().unwrap().push(current());
        }
    }
}

thread_local! {
    static FIRST: AsksLate = const { AsksLate(Cell::new(None)) };
    static LAST: AsksLate = const { AsksLate(Cell::new(None)) };
}

#[test]
fn a_thread_that_is_torn_down_still_gets_an_answer() {
    for asks_early in [true, false] {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let late = Arc::clone(&answers);
        thread::spawn(move || {
            // The order of destructors is unspecified: one runs before that of the token, one after it.
            FIRST.with(|first| first.0.set(Some(Arc::clone(&late))));
            if asks_early {
                current();
            }
            LAST.with(|last| last.0.set(Some(late)));
        })
        .join()
        .unwrap();
        let answers = answers.lock().unwrap();
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|token| *token < TOKENS), "{answers:?}");
    }
}
