//! A headless Chromium, driven by the DevTools protocol.
//!
//! It runs with `--remote-debugging-pipe`: messages are JSON, each followed by a zero byte, on descriptors 3 and 4 of
//! the browser. A shell sets up the descriptors. The tests therefore need no socket, no free port, and no crate with
//! the protocol's types.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The environment variable that names the browser.
const VARIABLE: &str = "SUBLET_BROWSER";
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// A browser without a reply for so long does not reply at all, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Maximum number of looks at a condition. A busy machine takes longer for each of them.
const LOOKS: u32 = 3000;

/// The shared browser. Starting it takes longer than most tests.
static SHARED: Mutex<Option<Pipe>> = Mutex::new(None);

/// A running browser. It ends with this process, because its pipe closes. Its shell then cleans up.
struct Pipe {
    /// Not waited for: it outlives the tests briefly.
    _shell: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
}

/// One window with one page, which closes on drop. Only one exists at a time, so that nothing distorts a page's time
/// measurements.
pub(crate) struct Browser {
    pipe: MutexGuard<'static, Option<Pipe>>,
    target: Value,
    session: Option<String>,
    events: Vec<Value>,
    /// Files that the test itself opened.
    opened: Vec<String>,
}

/// Returns the folder for pages and pictures.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report_page");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn browser() -> Option<String> {
    let names = std::env::var(VARIABLE).ok().into_iter().chain(NAMES.iter().map(|name| (*name).to_owned()));
    names.into_iter().find(|name| {
        let mut version = Command::new(name);
        version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

/// Opens a window. Without a browser, prints a message and returns `None`, or panics if the machine must have one.
pub(crate) fn start(test: &str) -> Option<Browser> {
    // A failed test leaves only replies that no other test waits for.
    let mut pipe = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if pipe.is_none() {
        let Some(name) = browser() else {
            let required = std::env::var_os("SUBLET_REQUIRE_VULKAN").is_some_and(|value| value == "1");
            assert!(
                !required,
                "SUBLET_REQUIRE_VULKAN=1, and there is no browser: tried {VARIABLE} and {NAMES:?}"
            );
            println!("SKIPPED {test}: no browser; {VARIABLE} names one");
            return None;
        };
        *pipe = Some(Pipe::start(&name));
    }
    let mut browser =
        Browser { pipe, target: Value::Null, session: None, events: Vec::new(), opened: Vec::new() };
    browser.attach();
    Some(browser)
}

impl Pipe {
    fn start(name: &str) -> Self {
        let profile = std::env::temp_dir().join(format!("sublet-page-{}", std::process::id()));
        let mut shell = Command::new("sh")
            .args(["-c", r#"profile=$1; shift; "$@" 3<&0 4>&1 </dev/null 1>&2; rm -rf "$profile""#, "sh"])
            .args([profile.as_os_str(), name.as_ref()])
            // The sandbox does not start for root, which containers run tests as. The page is our own.
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage"])
            .args([
                "--remote-debugging-pipe",
                &format!("--user-data-dir={}", profile.display()),
                "about:blank",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = shell.stdin.take().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        let (sender, from) = channel();
        // A thread reads the pipe, so that a silent browser fails the test instead of blocking it for ever.
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        Self { _shell: shell, to, from, last: 0 }
    }

    fn send(&mut self, method: &str, parameters: Value, session: Option<&str>) -> io::Result<()> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut text = message.to_string().into_bytes();
        text.push(0);
        self.to.write_all(&text)?;
        self.to.flush()
    }
}

impl Browser {
    fn attach(&mut self) {
        self.target = self.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].take();
        let session = self.call("Target.attachToTarget", json!({ "targetId": self.target, "flatten": true }));
        self.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.resize(1400, 1000);
    }

    /// Sends one command and returns its reply. Collects other messages of the page.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        let pipe = self.pipe.as_mut().unwrap();
        pipe.send(method, parameters, self.session.as_deref()).unwrap();
        loop {
            let mut answer =
                pipe.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == pipe.last {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            // Messages of another test's page may still arrive.
            if self.session.is_some() && answer["sessionId"].as_str() == self.session.as_deref() {
                self.events.push(answer);
            }
        }
    }

    /// Sets the size of the window, in pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets the system's preference for light or dark colours.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Writes a page to a file, opens it, and waits until it is drawn.
    pub(crate) fn open(&mut self, name: &str, html: &str) {
        let path = folder().join(format!("{name}.html"));
        fs::write(&path, html).unwrap();
        let url = format!("file://{}", path.display());
        self.opened.push(url.clone());
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{answer}");
        self.wait_for(&format!(
            "location.href === {} && document.documentElement?.dataset.state !== undefined",
            json!(url)
        ));
        assert_eq!(self.eval("document.documentElement.dataset.state"), "ready");
    }

    /// Opens a page of a server, and waits until it is drawn. The page may fetch its data.
    #[allow(dead_code, reason = "only the tests of the command have a server")]
    pub(crate) fn visit(&mut self, url: &str) {
        self.opened.push(url.to_owned());
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{answer}");
        self.wait_for(&format!(
            "location.href === {} && document.documentElement?.dataset.state === 'ready'",
            json!(url)
        ));
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let mut answer =
            self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until the effects of scrolling, typing or choosing are on the screen.
    pub(crate) fn settle(&mut self) {
        let frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        self.call("Runtime.evaluate", json!({ "expression": frames, "awaitPromise": true }));
    }

    /// Waits until a condition holds in the page.
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let mut looks = 0;
        while self.eval(condition) != true {
            looks += 1;
            assert!(looks < LOOKS, "never came true: {condition}");
            // Stops early if the script has failed.
            if looks > LOOKS / 12 {
                let is_exception = |event: &&Value| event["method"] == "Runtime.exceptionThrown";
                let exception = self.events.iter().find(is_exception);
                assert!(exception.is_none(), "{condition}: {}", exception.unwrap());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the trimmed text of the first element that a selector finds.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({}).textContent.trim()", json!(selector)));
        text.as_str().unwrap().to_owned()
    }

    /// Returns the texts of all elements that a selector finds.
    pub(crate) fn texts(&mut self, selector: &str) -> Vec<String> {
        let texts = self.eval(&format!(
            "[...document.querySelectorAll({})].map((element) => element.textContent.trim())",
            json!(selector)
        ));
        serde_json::from_value(texts).unwrap()
    }

    /// Returns true if the element is visible.
    pub(crate) fn is_visible(&mut self, selector: &str) -> bool {
        let expression = format!(
            "(() => {{ const e = document.querySelector({}); return e !== null && e.getClientRects().length > 0; }})()",
            json!(selector)
        );
        self.eval(&expression) == true
    }

    /// Scrolls an element into view and returns the window coordinates of its centre.
    pub(crate) fn middle(&mut self, selector: &str) -> (f64, f64) {
        let expression = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; }})()",
            json!(selector)
        );
        self.eval(&expression);
        self.settle();
        serde_json::from_value(self.eval(&expression)).unwrap()
    }

    /// Scrolls by a number of pixels.
    pub(crate) fn scroll_by(&mut self, pixels: f64) {
        self.eval(&format!("window.scrollBy(0, {pixels})"));
        self.settle();
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64)) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }

    pub(crate) fn point_at(&mut self, place: (f64, f64)) {
        self.mouse("mouseMoved", place);
    }

    pub(crate) fn click_at(&mut self, place: (f64, f64)) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, place);
        }
    }

    /// Presses the button at one place and releases it at another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from);
        self.mouse("mousePressed", from);
        let event = json!({ "type": "mouseMoved", "x": to.0, "y": to.1, "button": "left", "buttons": 1 });
        self.call("Input.dispatchMouseEvent", event);
        self.mouse("mouseReleased", to);
    }

    /// Clicks an element with the mouse.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.middle(selector);
        self.click_at(place);
    }

    /// Presses one key, by its name in JavaScript.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "text": text }));
        }
    }

    /// Types a new text into the search box.
    pub(crate) fn search(&mut self, query: &str) {
        self.eval("document.getElementById('search').select()");
        self.press_delete();
        self.call("Input.insertText", json!({ "text": query }));
        assert_eq!(self.eval("document.getElementById('search').value"), query);
    }

    fn press_delete(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46 });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Saves a picture of the window for manual inspection.
    pub(crate) fn picture(&mut self, name: &str) {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let path = folder().join(format!("{name}.png"));
        fs::write(&path, decode_base64(answer["data"].as_str().unwrap())).unwrap();
        println!("picture: {}", path.display());
    }

    /// Returns the browser's complaints, each once: errors and warnings of the console, exceptions, refused content,
    /// and requests for anything but the pages that the test opened.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // The reply comes after all earlier messages.
        self.call("Runtime.evaluate", json!({ "expression": "0" }));
        let opened = self.opened.clone();
        let is_page = |url: &str, page: &String| {
            let rest = url.strip_prefix(page.as_str());
            rest.is_some_and(|rest| {
                rest.is_empty() || (page.starts_with("http:") && rest.starts_with("data?"))
            })
        };
        let is_own = |url: &str| url == "about:blank" || opened.iter().any(|page| is_page(url, page));
        let events = std::mem::take(&mut self.events);
        events
            .iter()
            .filter_map(|event| {
                let parameters = &event["params"];
                match event["method"].as_str()? {
                    "Runtime.exceptionThrown" => {
                        Some(format!("exception: {}", parameters["exceptionDetails"]))
                    }
                    "Runtime.consoleAPICalled" => {
                        Some(format!("console.{}: {}", parameters["type"], parameters["args"]))
                    }
                    "Log.entryAdded" => Some(format!("log: {}", parameters["entry"])),
                    "Network.requestWillBeSent" => {
                        let url = parameters["request"]["url"].as_str().unwrap_or("?");
                        (!is_own(url)).then(|| format!("request for {url}"))
                    }
                    "Inspector.targetCrashed" => Some("the page crashed".to_owned()),
                    _ => None,
                }
            })
            .collect()
    }

    /// Waits for a complaint with this text, which may be delayed.
    pub(crate) fn wait_for_complaint(&mut self, part: &str) {
        let mut all = Vec::new();
        for _ in 0..LOOKS {
            all.append(&mut self.complaints());
            if all.iter().any(|said| said.contains(part)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no complaint has {part:?}: {all:?}");
    }

    /// Asserts that there were no complaints. Called at the end of a test.
    pub(crate) fn assert_silent(mut self) {
        assert_eq!(self.complaints(), [""; 0]);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.as_mut() {
            // The next test does not wait for this, and a failed test has already reported its reason.
            let _ = pipe.send("Target.closeTarget", json!({ "targetId": self.target }), None);
        }
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|&c| c != b'=').map(|c| u32::from(digit(c))).collect();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| (bits << 6) | digit) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

#[test]
fn base64_is_read() {
    for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
        assert_eq!(decode_base64(text), bytes.as_bytes());
    }
}
