//! Writes SVG elements from top to bottom.

use std::fmt::Write;

use crate::words::clean;

/// Left and right margin, in units.
pub(super) const LEFT: f64 = 32.0;
pub(super) const WIDTH: f64 = 1200.0;
/// Width of the drawing area, in units.
pub(super) const INNER: f64 = WIDTH - 2.0 * LEFT;

/// Class letters: c paper, h heading, s smaller heading, t text, m pale text, l label of a block, n name in a chunk, k
/// free, w bars, x budget, r o u of heaps (reserved, other processes, in use); q1 to q4 the used share of merged
/// chunks. b i j y u are kinds: see `plan`.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px;fill:#1e293b}\
.c{fill:#fff;stroke:#d8dee8}.h{font-size:22px;font-weight:600}.s{font-size:15px;font-weight:600}.m{fill:#64748b}\
.l{font-size:11px;fill:#64748b}.n{font-size:11px;fill:#fff;pointer-events:none}.k{fill:#e8edf4}.w{fill:#a3b5d1}\
.x{stroke:#dc2626;stroke-width:2}.r{fill:#a9b4f5}.o{fill:#c3ccd9}.g{fill:#4f46e5}\
.b{fill:#2563eb}.i{fill:#c2670a}.j{fill:#0d8a6a}.y{fill:#9333ea}.u{fill:#64748b}\
.q1{fill-opacity:.3}.q2{fill-opacity:.5}.q3{fill-opacity:.75}\
@media(prefers-color-scheme:dark){text{fill:#e2e8f0}.c{fill:#111827;stroke:#2b3648}.m,.l{fill:#94a3b8}.k{fill:#253044}\
.w{fill:#4d628a}.n{fill:#fff}.r{fill:#3b3a8a}.o{fill:#475569}.g{fill:#7c77f2}.b{fill:#3b74f0}.i{fill:#d07412}.j{fill:#109b78}.y{fill:#a04ff0}.u{fill:#6b7a90}\
.x{stroke:#f87171}}";

/// An SVG file in progress.
pub(super) struct Canvas {
    body: String,
    y: f64,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Self { body: String::new(), y: 0.0 }
    }

    /// Moves the position down.
    pub(super) fn skip(&mut self, units: f64) {
        self.y += units;
    }

    /// Writes text with its baseline at the canvas's position, cut off at about `width`.
    pub(super) fn text(&mut self, class: &str, x: f64, text: &str, width: f64, size: f64) {
        self.text_at(class, x, 0.0, &fitted(text, width, size));
    }

    /// Writes text without a cut, `down` units below the canvas's position.
    pub(super) fn text_at(&mut self, class: &str, x: f64, down: f64, text: &str) {
        let y = self.y + down;
        self.write(format_args!("<text class=\"{class}\" x=\"{}\" y=\"{}\">", Units(x), Units(y)));
        self.escaped(text);
        self.body.push_str("</text>\n");
    }

    /// Writes text that ends at the right edge.
    pub(super) fn text_to_right(&mut self, class: &str, text: &str) {
        self.text_to(class, LEFT + INNER, 0.0, text);
    }

    /// Writes text that ends at `x`, `down` units below the canvas's position.
    pub(super) fn text_to(&mut self, class: &str, x: f64, down: f64, text: &str) {
        let (x, y) = (Units(x), Units(self.y + down));
        self.write(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">"));
        self.escaped(text);
        self.body.push_str("</text>\n");
    }

    /// Draws a rectangle, `down` units below the canvas's position.
    pub(super) fn rect(&mut self, class: &str, x: f64, down: f64, width: f64, height: f64, round: f64) {
        let (x, y, round) = (Units(x), Units(self.y + down), Units(round));
        let (width, height) = (Units(width), Units(height));
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>\n"
        ));
    }

    /// Draws a rectangle with a title.
    pub(super) fn titled(&mut self, class: &str, x: f64, down: f64, width: f64, height: f64, title: &str) {
        let (x, y) = (Units(x), Units(self.y + down));
        let (width, height) = (Units(width), Units(height));
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>"
        ));
        self.escaped(title);
        self.body.push_str("</title></rect>\n");
    }

    /// Adds a rectangle to the path of a [`Self::shape`].
    pub(super) fn piece(&self, path: &mut String, x: f64, down: f64, width: f64, height: f64) {
        let (x, y, width, height) = (Units(x), Units(self.y + down), Units(width), Units(height));
        // Writing into a string does not fail.
        let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
    }

    /// Draws many rectangles as one element.
    pub(super) fn shape(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.write(format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
        }
    }

    /// Draws a vertical line across the canvas's position.
    pub(super) fn mark(&mut self, class: &str, x: f64, from: f64, to: f64) {
        let (x, from, to) = (Units(x), Units(self.y + from), Units(self.y + to));
        self.write(format_args!("<path class=\"{class}\" d=\"M{x} {from}V{to}\"/>\n"));
    }

    pub(super) fn swatch(&mut self, class: &str, x: f64) {
        self.rect(class, x, -10.0, 12.0, 12.0, 3.0);
    }

    pub(super) fn finish(self, title: &str) -> String {
        let mut head = Self::new();
        let height = Units((self.y + 32.0).ceil());
        let width = Units(WIDTH);
        head.write(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>"
        ));
        head.escaped(&clean(title));
        head.write(format_args!("</title>\n<style>{STYLE}</style>\n"));
        let (width, height) = (Units(WIDTH - 1.0), Units((self.y + 31.0).ceil() - 0.5));
        head.write(format_args!(
            "<rect class=\"c\" x=\"0.5\" y=\"0.5\" width=\"{width}\" height=\"{height}\" rx=\"10\"/>\n"
        ));
        head.body.push_str(&self.body);
        head.body.push_str("</svg>\n");
        head.body
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = self.body.write_fmt(arguments);
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.body.push_str("&amp;"),
                '<' => self.body.push_str("&lt;"),
                '>' => self.body.push_str("&gt;"),
                c => self.body.push(c),
            }
        }
    }
}

/// A length with at most two decimals.
struct Units(f64);

impl std::fmt::Display for Units {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.2}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Estimates the width of a text, since fonts differ.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(|c| width_of_char(c, size)).sum()
}

fn width_of_char(c: char, size: f64) -> f64 {
    let share = match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' | 'I' | 't' | 'f' | 'r' => 0.38,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        'A'..='Z' | '_' => 0.7,
        c if u32::from(c) < 0x250 => 0.61,
        _ => 1.0,
    };
    share * size
}

/// Returns the part of the text that fits, with an ellipsis if it is cut.
pub(super) fn fitted(text: &str, width: f64, size: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut left = width - width_of_char('m', size);
    let start = text.chars().take_while(|&c| {
        left -= width_of_char(c, size);
        left >= 0.0
    });
    let start: String = start.collect();
    if start.is_empty() { start } else { format!("{}\u{2026}", start.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Approximate widths in Arial, the narrower font, and DejaVu Sans, in thousandths of the size.
    #[test]
    fn a_text_is_taken_to_be_about_as_wide_as_fonts_draw_it() {
        let drawn = [
            ("illicit", 260..=430),
            ("mmmmmmmm", 833..=975),
            ("WWWWWWWW", 940..=990),
            ("ABCDEFGHIJ", 600..=720),
            ("vertices 0123456789", 480..=620),
            ("block 12 \u{b7} 256 MiB \u{b7} 75 % in use", 440..=590),
            ("\u{6f22}\u{5b57}", 1000..=1000),
        ];
        for (text, thousandths) in drawn {
            let (least, most) = (f64::from(*thousandths.start()), f64::from(*thousandths.end()));
            let count = u32::try_from(text.chars().count()).unwrap();
            let width = 1000.0 * width_of(text, 11.0) / (11.0 * f64::from(count));
            assert!((least..=most).contains(&width), "{text}: {width} is not within {thousandths:?}");
        }
        assert_eq!(width_of("", 11.0), 0.0);
    }

    #[test]
    fn as_much_of_a_text_is_shown_as_fits() {
        let text = "vello.segments_buf";
        let whole = width_of(text, 11.0);
        assert_eq!(fitted(text, whole, 11.0), text);
        for step in 0..200 {
            let width = whole * f64::from(step) / 200.0;
            let shown = fitted(text, width, 11.0);
            if shown.is_empty() {
                assert!(
                    width < width_of("v", 11.0) + width_of("m", 11.0) + 1e-9,
                    "{width}: nothing is shown"
                );
                continue;
            }
            let start = shown.strip_suffix('\u{2026}').unwrap();
            assert!(text.starts_with(start), "{shown}");
            // The ellipsis is as wide as an m.
            assert!(width_of(start, 11.0) + width_of("m", 11.0) <= width + 1e-9, "{width}: {shown}");
            let more: String = text.chars().take(start.chars().count() + 1).collect();
            assert!(width_of(&more, 11.0) + width_of("m", 11.0) > width - 1e-9, "{width}: {shown}");
        }
    }
}
