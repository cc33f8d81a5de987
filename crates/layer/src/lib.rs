//! A Vulkan layer that records what a program does with device memory.
//!
//! The loader places a layer between the program and the driver. This one forwards each call except `vkCreateDevice`
//! unchanged, and writes those that concern memory into a file for each device. The program sees the same handles,
//! results and extensions as without it. `sublet watch -- PROGRAM` loads the layer into a program, and
//! [`sublet::trace::Trace`] reads the file.
//!
//! | variable | meaning |
//! |---|---|
//! | `SUBLET_WATCH` | the file to write; without it nothing is recorded. `%p` is replaced by the process id |
//! | `SUBLET_WATCH_LIMIT` | the bytes after which another file is started; 512 MiB by default |
//! | `SUBLET_WATCH_NAMES` | `0` leaves out the names of objects and of the program |
//!
//! # Overview
//!
//! ```text
//! negotiate        the exported function that the loader calls first
//! exports          those by which Android finds the layer
//! instance         creation of instances
//! device           creation of devices
//! calls            the recorded functions, each of which calls the next layer
//! table, chain     functions of the next layer, pNext chains
//! recording        files, segments, writers, live objects
//! message          messages to the user
//! registry         from handle to instance or device
//! settings         environment variables
//! ```
//!
//! # Safety
//!
//! Each function relies on these conditions. The safety comments of this crate refer to them:
//!
//! - **V1** The program and the other layers meet Vulkan's valid usage. Handles are live. Pointers are valid for reads
//!   or writes of as many elements as the parameter says. A `pNext` chain is a list of structures, each of the type
//!   that its `sType` states.
//! - **V2** A dispatchable handle points to an object whose first word identifies its instance or device. The loader
//!   guarantees this to layers. No thread destroys an instance or device while another call uses it.
//! - **V3** The function pointer that the next layer returns for a name has the type that Vulkan defines for this name,
//!   and is valid as long as its instance or device.
#![deny(unsafe_code)]

mod calls;
mod chain;
mod device;
mod exports;
mod instance;
mod message;
mod negotiate;
mod recording;
mod registry;
mod settings;
mod table;

#[doc(hidden)]
pub use negotiate::vkNegotiateLoaderLayerInterfaceVersion;
