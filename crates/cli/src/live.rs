//! Serves the page of a recording that grows, to browsers of this machine only.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::answer::{Answer, complain};
use crate::failure::CommandFailure;
use crate::files;
use crate::growing::{FoundRecording, GrowingRecordings};
use crate::port::{PageRequest, Port};

/// How long the server waits for a request before it looks whether the program has ended.
const WAIT: Duration = Duration::from_millis(200);
/// How long a page may fetch the last state after the program has ended. A busy machine, or a browser whose window is
/// hidden, may let it wait for long.
const GRACE: Duration = Duration::from_secs(30);

/// A server for the pages of recordings.
pub(crate) struct LiveServer {
    port: Port,
    recordings: GrowingRecordings,
    /// The time of the last request for data.
    asked: Option<Instant>,
}

impl LiveServer {
    /// Starts a server for recordings, which need not exist yet, and prints the address of its page.
    pub(crate) fn start(recordings: GrowingRecordings) -> Result<Self, CommandFailure> {
        let port = Port::open()?;
        complain(&format!("sublet: http://{}/", port.root));
        Ok(Self { port, recordings, asked: None })
    }

    /// Answers requests until the recordings have ended, or `is_over` returns true. A page that is open may then fetch the
    /// last state. Calls `ended` before that.
    pub(crate) fn serve(mut self, is_over: impl Fn() -> bool, ended: impl Fn()) {
        let mut over: Option<Instant> = None;
        loop {
            self.recordings.refresh();
            if over.is_none() && (is_over() || self.recordings.has_ended) {
                let start = Instant::now();
                self.recordings.end();
                over = Some(Instant::now());
                // No page was answered meanwhile: the last read of a large recording takes seconds.
                self.asked = self.asked.map(|asked| asked + start.elapsed());
                ended();
            }
            let is_open = self.asked.is_some_and(|asked| asked.elapsed() < GRACE);
            if over.is_some_and(|over| over.elapsed() > GRACE || !is_open) {
                return;
            }
            let Some(request) = self.port.next(WAIT) else { continue };
            if self.answer(request) && over.is_some() {
                return;
            }
        }
    }

    /// Answers one request. Returns true if all last states were sent.
    fn answer(&mut self, request: PageRequest) -> bool {
        let wanted = state_of(&request.path).filter(|(_, device)| self.recordings.has(*device));
        let mut is_last = false;
        let answer = if let Some((since, device)) = wanted {
            self.asked = Some(Instant::now());
            match self.recordings.since(since, device) {
                Some(data) => {
                    is_last = self.recordings.is_sent();
                    (200, "application/json", data)
                }
                None => (204, "application/json", String::new()),
            }
        } else if request.path == "/" {
            (200, "text/html; charset=utf-8", self.recordings.to_html())
        } else {
            (404, "text/plain", "no such page\n".to_owned())
        };
        request.answer(&answer).is_ok() && is_last
    }
}

/// Returns the version that a page has, and the index of the device that it shows.
fn state_of(path: &str) -> Option<(u64, usize)> {
    let query = path.strip_prefix("/data?since=")?;
    let (since, device) = query.split_once("&device=").unwrap_or((query, "0"));
    Some((since.parse().ok()?, device.parse().ok()?))
}

/// Serves a recording until it has ended.
pub(crate) fn run(path: &Path, title: Option<&str>) -> Result<Answer, CommandFailure> {
    #[derive(Serialize)]
    struct LiveDocument<'a> {
        recording: &'a Path,
    }
    let title = title.map_or_else(|| files::name(path), str::to_owned);
    let found = path.to_owned();
    let find = move || vec![FoundRecording { device: String::new(), path: found.clone() }];
    let mut recordings = GrowingRecordings::new(title, find);
    recordings.is_whole = true;
    let server = LiveServer::start(recordings)?;
    server.serve(|| false, || ());
    let document = LiveDocument { recording: path };
    let text = format!("{}: the recording has ended\n", path.display());
    Ok(Answer::new("sublet-report", 1, text, &document))
}

/// A server in a thread of its own, for a program that runs.
pub(crate) struct LiveThread {
    is_over: Arc<AtomicBool>,
    /// Has a message when the recordings have ended, and ends with the thread.
    running: mpsc::Receiver<()>,
}

impl LiveThread {
    /// Starts a server for recordings.
    pub(crate) fn start(recordings: GrowingRecordings) -> Result<Self, CommandFailure> {
        let server = LiveServer::start(recordings)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_over);
        let (ending, running) = mpsc::channel();
        thread::spawn(move || {
            let ended = || {
                // Nobody receives it if the command was interrupted.
                let _ = ending.send(());
            };
            server.serve(|| shared.load(Ordering::Relaxed), ended);
        });
        Ok(Self { is_over, running })
    }

    /// Ends the server, after an open page has fetched the last state.
    pub(crate) fn finish(self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic of the server was reported, and does not change the result of the program. A page that takes no data
        // does not delay the result.
        let _ = self.running.recv();
        let _ = self.running.recv_timeout(GRACE + Duration::from_secs(1));
    }
}
