//! Memory that is shared with others: the functions of Windows.
