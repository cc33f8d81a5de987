//! The form of a broken rule.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// The identifier of a rule that a call breaks, and a text that says how.
pub(crate) type Broken = (&'static str, String);

/// The identifier of a rule: `rest` is what follows the call or structure that has it. Two forms of a call share their
/// checks, and each has identifiers of its own. Every identifier is kept once, for as long as the process runs.
pub(crate) fn rule(of: &str, rest: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = format!("VUID-{of}-{rest}");
    let mut known = KNOWN.lock();
    if let Some(rule) = known.get(text.as_str()) {
        return rule;
    }
    let rule: &'static str = text.leak();
    known.insert(rule);
    rule
}

/// `refuse_if!(condition => rule, text, ...)` returns the rule as broken if the condition holds. The text is as for
/// `format!`.
macro_rules! refuse_if {
    ($broken:expr => $rule:expr, $($text:tt)+) => {
        if $broken {
            return Err(($rule, format_args!($($text)+).to_string()));
        }
    };
}
pub(crate) use refuse_if;
