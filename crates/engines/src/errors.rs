//! The texts and the sources of errors, for all crates of the workspace.

/// Implements [`Display`](std::fmt::Display) and [`Error`](std::error::Error) of an enum, or of a structure without a
/// source, and [`From`] for the fields whose type is given.
///
/// Each row is a variant and its text. A text shows its inner error: the only field in parentheses, or the field named
/// after the text. So `source` returns the source of that inner error. `from` gives a source that the text does not
/// show. Arguments of the text are in parentheses.
#[doc(hidden)]
#[macro_export]
macro_rules! errors {
    (struct $error:ident { $($field:tt)* } => $text:literal $(($($argument:tt)*))?) => {
        impl ::std::fmt::Display for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let Self { $($field)* } = self;
                ::std::write!(f, $text $(, $($argument)*)?)
            }
        }

        impl ::std::error::Error for $error {}
    };
    ($error:ident:
        $($variant:ident $({ $($field:tt)* })? $(($inner:ident $(: $from:ty)?))? =>
            $text:literal $(($($argument:tt)*))? $(, $source:ident)? $(from $cause:expr)?;)*
    ) => {
        impl ::std::fmt::Display for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant $({ $($field)* })? $(($inner))? => ::std::write!(f, $text $(, $($argument)*)?),)*
                }
            }
        }

        impl ::std::error::Error for $error {
            #[allow(unused_variables, reason = "most fields are for the text alone")]
            fn source(&self) -> Option<&(dyn ::std::error::Error + 'static)> {
                match self {
                    $(Self::$variant $({ $($field)* })? $(($inner))? => {
                        None::<&(dyn ::std::error::Error + 'static)>
                            $(.or(::std::error::Error::source($inner)))?
                            $(.or(::std::error::Error::source($source)))?
                            $(.or(Some($cause)))?
                    })*
                }
            }
        }

        $($($(
            impl From<$from> for $error {
                fn from(error: $from) -> Self {
                    Self::$variant(error)
                }
            }
        )?)?)*
    };
}
