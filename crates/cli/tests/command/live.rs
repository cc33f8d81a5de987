//! `sublet report --live`: the page of a recording that grows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sublet::trace::ForeignRecords;

use crate::browser;
use crate::{Folder, repository};

/// A running server, and the address of its page.
struct Serving {
    child: Child,
    host: String,
    path: String,
}

impl Serving {
    fn start(folder: &Folder, arguments: &str) -> Self {
        Self::of(&mut folder.command(arguments))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        messages.read_line(&mut line).unwrap();
        // A closed pipe would end programs that write to it.
        thread::spawn(move || messages.read_to_end(&mut Vec::new()));
        let address = line.trim().strip_prefix("sublet: http://").unwrap_or_else(|| panic!("{line}"));
        let (host, path) = address.split_once('/').unwrap();
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    /// Sends a request, and returns the status and the whole answer.
    fn request(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer[9..12].parse().unwrap(), answer)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.request("GET", path, &self.host)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A failed test would leave it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a recording of several chunks.
fn recording() -> Vec<u8> {
    std::fs::read(repository().join("tests/traces/tour.trace")).unwrap()
}

#[test]
fn only_the_address_with_its_token_is_answered() {
    let folder = Folder::new();
    let bytes = recording();
    folder.write("game.trace", &bytes[..bytes.len() / 2]);
    let serving = Serving::start(&folder, "report game.trace --live");
    assert!(serving.host.starts_with("127.0.0.1:"), "{}", serving.host);
    assert_eq!(serving.path.len(), 34, "128 bits: {}", serving.path);
    let (code, page) = serving.get(&serving.path);
    assert_eq!(code, 200, "{page}");
    for header in ["Cache-Control: no-store", "frame-ancestors 'none'", "Referrer-Policy: no-referrer"] {
        assert!(page.contains(header), "{header}");
    }
    assert!(page.contains("connect-src 'self'") && page.contains("<title>game.trace</title>"));
    let other = serving.path.replace(|c: char| c.is_ascii_digit(), "a").replace('b', "c");
    for path in ["/", "/favicon.ico", "/data?since=0", &other, serving.path.trim_end_matches('/')] {
        assert_eq!(serving.get(path).0, 404, "{path}");
    }
    // A name of another server that leads here.
    assert_eq!(serving.request("GET", &serving.path, "attacker.example").0, 404);
    assert_eq!(serving.request("POST", &serving.path, &serving.host).0, 404);
    let data = format!("{}data?since=", serving.path);
    let (code, first) = serving.get(&format!("{data}0"));
    assert_eq!(code, 200);
    let start = r#"{"version":2,"ended":false,"devices":["1"],"history":{"#;
    assert!(first.contains(start), "the device, and its first state: {first}");
    assert_eq!(serving.get(&format!("{data}2")).0, 204);
    assert_eq!(serving.get(&format!("{data}0&device=-1")).0, 404);
    assert_eq!(serving.get(&format!("{data}x")).0, 404);
}

/// The page does not ask for such a device, but a user may edit its address.
#[test]
fn a_device_that_does_not_exist_does_not_stop_the_page() {
    let folder = Folder::new();
    let bytes = recording();
    folder.write("game.trace", &bytes[..bytes.len() / 2]);
    let mut serving = Serving::start(&folder, "report game.trace --live");
    let data = format!("{}data?since=", serving.path);
    assert_eq!(serving.get(&format!("{data}0")).0, 200);
    for device in [1, 7, u64::MAX] {
        assert_eq!(serving.get(&format!("{data}0&device={device}")).0, 404);
    }
    folder.write("game.trace", &bytes);
    assert!(serving.child.wait().unwrap().success(), "it reads the end");
}

/// A client that never sends the body that it announces.
#[test]
fn a_missing_body_does_not_stop_the_server() {
    let folder = Folder::new();
    folder.write("game.trace", &recording()[..4096]);
    let serving = Serving::start(&folder, "report game.trace --live");
    let mut open = Vec::new();
    for headers in [
        format!("Content-Length: {}", 1_u64 << 62),
        "Content-Length: 10\r\nExpect: 100-continue".to_owned(),
        "Transfer-Encoding: chunked".to_owned(),
    ] {
        let mut stream = TcpStream::connect(&serving.host).unwrap();
        write!(stream, "POST / HTTP/1.1\r\nHost: {}\r\n{headers}\r\n\r\n", serving.host).unwrap();
        open.push(stream);
        assert_eq!(serving.get("/").0, 404, "{headers}");
    }
}

#[test]
fn the_page_follows_the_recording_until_it_ends() {
    let Some(mut browser) = browser::start("the_page_follows_the_recording_until_it_ends") else { return };
    let folder = Folder::new();
    let bytes = recording();
    folder.write("game.trace", &bytes[..bytes.len() / 2]);
    let mut serving = Serving::start(&folder, "report game.trace --live");
    browser.visit(&format!("http://{}{}", serving.host, serving.path));
    browser.wait_for("page.history.calls > 0");
    let calls = browser.eval("page.history.calls").as_u64().unwrap();
    assert_eq!(browser.text("#live"), "Live");
    // The page shows the end, until another moment is selected.
    assert_eq!(browser.eval("page.timeline.selection.now === page.history.last"), true);
    folder.write("game.trace", &bytes[..bytes.len() / 4 * 3]);
    browser.wait_for(&format!("page.history.calls > {calls} && page.timer === null"));
    let used = "document.querySelector('#figure-used .detail').textContent";
    let sum =
        "`${exact(page.history.heaps.reduce((sum, heap) => sum + heap.used[page.history.last], 0))} bytes`";
    assert_eq!(browser.eval(used), browser.eval(sum));
    assert!(!browser.is_visible("#devices"), "there is one");
    assert_eq!(browser.text("#findings-title"), "Findings so far");
    browser.picture("live");
    browser.eval("page.timeline.select(null, 5)");
    folder.write("game.trace", &bytes);
    browser.wait_for("document.getElementById('live').textContent === 'The program has ended'");
    assert_eq!(browser.eval("page.timeline.selection.now"), 5);
    assert_eq!(browser.eval("page.history.calls"), 9485);
    assert_eq!(browser.text("#findings-title"), "Findings");
    let found = folder.run("report game.trace --findings json").expect(0).json();
    let texts = found["findings"].as_array().unwrap().iter().map(|finding| finding["text"].as_str().unwrap());
    let shown = browser.texts("#findings-list > li > p:first-child > span:last-child");
    assert_eq!(shown, texts.collect::<Vec<_>>());
    assert!(!shown.is_empty());
    assert!(serving.child.wait().unwrap().success());
    browser.assert_silent();
}

/// The program runs until a line arrives. Its device ends before, so the recording is complete by then.
#[cfg(target_os = "linux")]
#[test]
fn a_watched_program_has_a_page_until_it_ends() {
    let Some(mut browser) = browser::start("a_watched_program_has_a_page_until_it_ends") else { return };
    if !crate::has_vulkan() {
        return;
    }
    let folder = crate::files::folder();
    let script =
        concat!(env!("CARGO_BIN_EXE_sublet"), " replay frames.trace --device 0 --no-progress; read line");
    let mut command = crate::watch::command(&folder, "watch --live -o a.trace -- sh -c");
    let mut serving = Serving::of(command.arg(script).stdin(Stdio::piped()));
    browser.visit(&format!("http://{}{}", serving.host, serving.path));
    browser.wait_for("page.history.memories.count > 0 && page.timer === null && page.history.raw.is_foreign");
    assert_eq!(browser.text("#live"), "Live");
    browser.picture("watch-live");
    serving.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    browser.wait_for("document.getElementById('live').textContent === 'The program has ended'");
    assert!(serving.child.wait().unwrap().success());
    browser.assert_silent();
}

/// Two processes, each with a device.
#[cfg(target_os = "linux")]
#[test]
fn a_watched_program_has_a_choice_of_its_devices() {
    let Some(mut browser) = browser::start("a_watched_program_has_a_choice_of_its_devices") else { return };
    if !crate::has_vulkan() {
        return;
    }
    let folder = crate::files::folder();
    folder.write("tour.trace", recording());
    let script = concat!(
        "sublet() { ",
        env!("CARGO_BIN_EXE_sublet"),
        " replay $1.trace --device 0 --no-progress; }; sublet frames; touch ended; read line; sublet tour; read line"
    );
    let mut command = crate::watch::command(&folder, "watch --live -o a.trace -- bash -c");
    let mut serving = Serving::of(command.arg(script).stdin(Stdio::piped()));
    browser.visit(&format!("http://{}{}", serving.host, serving.path));
    while !folder.path("ended").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let bytes = std::fs::read(folder.path("a.trace")).unwrap();
    let first = ForeignRecords::new(&bytes).unwrap().count();
    let (calls, findings) = ("page.history.calls", "page.history.raw.findings.length > 0");
    browser.wait_for(&format!("{calls} === {first} && page.timer === null && {findings}"));
    assert!(!browser.is_visible("#devices"), "there is one so far");
    serving.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    browser.wait_for("document.querySelectorAll('#device-choice option').length === 2");
    assert!(browser.is_visible("#devices"));
    let names = browser.texts("#device-choice option");
    assert!(names[0].starts_with("1: ") && names[1].contains(", process "), "{names:?}");
    browser.resize(400, 800);
    browser.eval("page.timeline.select(null, 1)");
    let choose = |at: u8| {
        format!(
            "(() => {{ const choice = document.getElementById('device-choice'); \
             choice.selectedIndex = {at}; choice.dispatchEvent(new Event('change')); }})()"
        )
    };
    browser.eval(&choose(1));
    // Data may still arrive, so all of it is one condition.
    let is_last = "page.timeline.selection.now === page.history.last";
    browser.wait_for(&format!("{calls} > {first} && page.timer === null && {findings} && {is_last}"));
    browser.eval("window.scrollTo(0, 0)");
    browser.picture("watch-live-devices");
    serving.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    browser.wait_for("document.getElementById('live').textContent === 'The program has ended'");
    assert!(serving.child.wait().unwrap().success());
    // The page has the other device without the server.
    browser.eval(&choose(0));
    browser.wait_for(&format!("{calls} === {first} && page.timer === null"));
    browser.assert_silent();
}

/// An open page keeps the command alive after its program.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_command_after_its_program() {
    use std::os::unix::process::ExitStatusExt as _;

    let folder = Folder::new();
    let mut command = crate::watch::command(&folder, "watch --live -- sh -c");
    let mut serving = Serving::of(command.arg("trap '' TERM; read line").stdin(Stdio::piped()));
    assert_eq!(serving.get(&format!("{}data?since=0", serving.path)).0, 204);
    drop(serving.child.stdin.take());
    let status = loop {
        let kill = Command::new("kill").args(["-TERM", &serving.child.id().to_string()]).status().unwrap();
        assert!(kill.success(), "it is not reaped yet");
        if let Some(status) = serving.child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.signal(), Some(15));
}

/// Without a page, the command ends with its program.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_nobody_looks_at_ends_at_once() {
    let folder = Folder::new();
    let found = crate::outcome(&mut crate::watch::command(&folder, "watch --live -- true")).expect(0);
    assert!(found.err.contains("sublet: http://127.0.0.1:"), "{}", found.err);
}

#[test]
fn a_map_does_not_grow() {
    let folder = crate::files::folder();
    let found = folder.run("report map.json --live").expect(2);
    assert!(found.err.contains("--live is for a recording"), "{}", found.err);
    folder.run("report nothing.trace --live").expect(3);
}
