//! The form of a broken rule.

/// The identifier of a rule that a call breaks, and a text that says how.
pub(crate) type Broken = (&'static str, String);

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
