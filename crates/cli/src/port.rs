//! A server for browsers of this machine. It answers `GET`, and closes each connection after one answer.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::failure::CommandFailure;

/// How long a client may take to send the next byte, or to take one.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of the head of a request, and of a body that is read and dropped.
const MOST_READ: u64 = 1 << 16;

/// A free port of 127.0.0.1. Its pages have a random token in their addresses, so that other users of the machine, and
/// pages of other servers, cannot read them.
pub(crate) struct Port {
    /// The address and the token: `127.0.0.1:40000/0123...`.
    pub(crate) root: String,
    /// The requests with the token. Each connection has a thread that answers all others.
    requests: mpsc::Receiver<PageRequest>,
}

/// A `GET` with the token.
pub(crate) struct PageRequest {
    /// The rest of the path.
    pub(crate) path: String,
    stream: TcpStream,
}

/// The status of an answer, its type and its content.
pub(crate) type PageAnswer = (u16, &'static str, String);

impl Port {
    /// Opens a port.
    pub(crate) fn open() -> Result<Self, CommandFailure> {
        let mut token = [0; 16];
        getrandom::fill(&mut token)
            .map_err(|error| CommandFailure::file("there is no random token", error.to_string()))?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let failure = |error| CommandFailure::file("no port of 127.0.0.1 can be opened", error);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failure)?;
        let host = listener.local_addr().map_err(failure)?.to_string();
        let (sender, requests) = mpsc::channel();
        let root = format!("{host}/{token}");
        let listen = move || {
            for stream in listener.incoming() {
                let (host, token, sender) = (host.clone(), token.clone(), sender.clone());
                let taken = stream.and_then(|stream| {
                    thread::Builder::new().spawn(move || receive(stream, &host, &token, &sender))
                });
                if taken.is_err() {
                    // There are too many connections or threads.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        };
        thread::Builder::new().spawn(listen).map_err(failure)?;
        Ok(Self { root, requests })
    }

    /// Waits for the next request with the token.
    pub(crate) fn next(&self, timeout: Duration) -> Option<PageRequest> {
        self.requests.recv_timeout(timeout).ok()
    }
}

impl PageRequest {
    /// Answers. The browser may have gone.
    pub(crate) fn answer(self, answer: &PageAnswer) -> io::Result<()> {
        write(&self.stream, answer)
    }
}

/// Passes a request on, or answers it if it is for no page.
fn receive(stream: TcpStream, host: &str, token: &str, sender: &mpsc::Sender<PageRequest>) {
    // They fail only for a duration of 0.
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    if let Some(path) = page(BufReader::new((&stream).take(MOST_READ)), host, token) {
        // Nobody receives it after the end.
        let _ = sender.send(PageRequest { path, stream });
        return;
    }
    // A socket that is closed before it was read loses the answer.
    let _ = write(&stream, &(404, "text/plain", "no such page\n".to_owned()))
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| io::copy(&mut (&stream).take(MOST_READ), &mut io::sink()));
}

/// Returns the path after the token, if the head of the request is whole. A page of another server may have a name that
/// leads to this address, so the host must be right.
fn page(head: impl BufRead, host: &str, token: &str) -> Option<String> {
    let mut lines = head.lines().map_while(Result::ok);
    let first = lines.next()?;
    let path = first.strip_prefix("GET /")?.split_once(" HTTP/1.")?.0.strip_prefix(token)?.to_owned();
    let mut is_ours = false;
    let rest = lines.find(|line| {
        let field = line.split_once(':');
        is_ours |=
            field.is_some_and(|(name, value)| name.eq_ignore_ascii_case("host") && value.trim() == host);
        field.is_none()
    });
    (is_ours && rest.is_some_and(|line| line.is_empty())).then_some(path)
}

fn write(mut stream: &TcpStream, (code, kind, body): &PageAnswer) -> io::Result<()> {
    let reason = match code {
        200 => "OK",
        204 => "No Content",
        _ => "Not Found",
    };
    // An answer without content has no length.
    let length = if *code == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    write!(
        stream,
        "HTTP/1.1 {code} {reason}\r\n{length}Content-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n{body}"
    )
}
