//! Serves the page of a recording that grows, to browsers of this machine only.

use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::answer::{Answer, complain};
use crate::failure::CommandFailure;
use crate::files;
use crate::growing::{FoundRecording, GrowingRecordings};

/// How long the server waits for a request before it looks whether the program has ended.
const WAIT: Duration = Duration::from_millis(200);
/// How long a page may fetch the last state after the program has ended. A busy machine, or a browser whose window is
/// hidden, may let it wait for long.
const GRACE: Duration = Duration::from_secs(30);

/// Bytes of a body that `tiny_http` reads before it hands over a request.
const READ_AT_ONCE: usize = 1024;

/// A server on a free port of 127.0.0.1. Its pages have a random token in their addresses, so that other users of the
/// machine, and pages of other servers, cannot read them.
pub(crate) struct LiveServer {
    server: Server,
    host: String,
    token: String,
    recordings: GrowingRecordings,
    /// The time of the last request for data.
    asked: Option<Instant>,
}

impl LiveServer {
    /// Starts a server for recordings, which need not exist yet, and prints the address of its page.
    pub(crate) fn start(recordings: GrowingRecordings) -> Result<Self, CommandFailure> {
        let failure = |what: &str, error: String| CommandFailure::file(what.to_owned(), error);
        let mut token = [0; 16];
        getrandom::fill(&mut token)
            .map_err(|error| failure("there is no random token", error.to_string()))?;
        let server = Server::http("127.0.0.1:0")
            .map_err(|error| failure("no port of 127.0.0.1 can be opened", error.to_string()))?;
        let host = server.server_addr().to_string();
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        complain(&format!("sublet: http://{host}/{token}/"));
        Ok(Self { server, host, token, recordings, asked: None })
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
            // An error of the socket is one of a single request.
            let Ok(Some(request)) = self.server.recv_timeout(WAIT) else { continue };
            if self.answer(request) && over.is_some() {
                return;
            }
        }
    }

    /// Answers one request. Returns true if all last states were sent.
    fn answer(&mut self, request: Request) -> bool {
        if may_have_body(&request) {
            // Dropping it would read the body in this thread, and allocate the length that the client states. So its
            // connection stays open until the server ends.
            mem::forget(request);
            return false;
        }
        let is_ours = |header: &Header| header.field.equiv("Host") && header.value.as_str() == self.host;
        let path = request.url().strip_prefix('/').and_then(|path| path.strip_prefix(self.token.as_str()));
        // A page of another server may have a name that leads to this address.
        let path = path.filter(|_| request.headers().iter().any(is_ours) && *request.method() == Method::Get);
        let wanted = path.and_then(state_of).filter(|(_, device)| self.recordings.has(*device));
        let (code, kind, body, is_last) = if let Some((since, device)) = wanted {
            self.asked = Some(Instant::now());
            match self.recordings.since(since, device) {
                Some(data) => (200, "application/json", data, self.recordings.is_sent()),
                None => (204, "application/json", String::new(), false),
            }
        } else if path == Some("/") {
            (200, "text/html; charset=utf-8", self.recordings.to_html(), false)
        } else {
            (404, "text/plain", "no such page\n".to_owned(), false)
        };
        let mut response = Response::from_string(body).with_status_code(code);
        for (field, value) in [
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ] {
            if let Ok(header) = Header::from_bytes(field, value) {
                response.add_header(header);
            }
        }
        // The browser may have gone.
        request.respond(response).is_ok() && is_last
    }
}

/// Returns the version that a page has, and the index of the device that it shows.
fn state_of(path: &str) -> Option<(u64, usize)> {
    let query = path.strip_prefix("/data?since=")?;
    let (since, device) = query.split_once("&device=").unwrap_or((query, "0"));
    Some((since.parse().ok()?, device.parse().ok()?))
}

/// Returns true unless the server has read all of a request.
fn may_have_body(request: &Request) -> bool {
    let is_open = |header: &Header| {
        ["Transfer-Encoding", "Expect", "Upgrade"].iter().any(|name| header.field.equiv(name))
            || (header.field.equiv("Connection")
                && header.value.as_str().to_ascii_lowercase().contains("upgrade"))
    };
    request.body_length().unwrap_or(0) > READ_AT_ONCE || request.headers().iter().any(is_open)
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
