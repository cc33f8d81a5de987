//! The target of presentation: an X11 window, or a headless surface.
//!
//! A program would use a window crate. This one calls six functions of libxcb, which every Vulkan driver for X11
//! depends on. It builds quickly and runs under Xvfb.

use std::ffi::{c_char, c_int, c_void};

use ash::{ext, khr, vk};

use sublet_examples::{Context, Result};

pub(crate) struct Window {
    pub(crate) surface: vk::SurfaceKHR,
    pub(crate) functions: khr::surface::Instance,
    /// The requested size, for surfaces that have no size of their own.
    wanted: vk::Extent2D,
    /// Dropped after the surface.
    x11: Option<X11>,
}

impl Window {
    /// Opens a window. Returns `None` if the driver cannot present.
    pub(crate) fn open(context: &Context, wanted: vk::Extent2D) -> Result<Option<Self>> {
        let Some(entry) = context.entry() else { return Ok(None) };
        let (instance, functions) =
            (context.instance(), khr::surface::Instance::new(entry, context.instance()));
        if context.has_surface(ext::headless_surface::NAME) {
            let headless = ext::headless_surface::Instance::new(entry, instance);
            let info = vk::HeadlessSurfaceCreateInfoEXT::default();
            // SAFETY: the extension is enabled.
            let surface = unsafe { headless.create_headless_surface(&info, None) }?;
            return Ok(Some(Self { surface, functions, wanted, x11: None }));
        }
        if !context.has_surface(khr::xcb_surface::NAME) {
            return Ok(None);
        }
        let Some(x11) = X11::open(wanted)? else { return Ok(None) };
        let xcb = khr::xcb_surface::Instance::new(entry, instance);
        let info = vk::XcbSurfaceCreateInfoKHR::default().connection(x11.connection).window(x11.window);
        // SAFETY: the extension is enabled, and connection and window live longer than the surface.
        let surface = unsafe { xcb.create_xcb_surface(&info, None) }?;
        Ok(Some(Self { surface, functions, wanted, x11: Some(x11) }))
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.x11.is_some() { "a window of X11" } else { "a surface without a window" }
    }

    /// Resizes the window, as a user would.
    pub(crate) fn resize(&mut self, size: vk::Extent2D) {
        self.wanted = size;
        if let Some(x11) = &self.x11 {
            x11.resize(size);
        }
    }

    /// Returns the current extent for images.
    pub(crate) fn extent(&self, capabilities: &vk::SurfaceCapabilitiesKHR) -> vk::Extent2D {
        let (own, least, most) =
            (capabilities.current_extent, capabilities.min_image_extent, capabilities.max_image_extent);
        if own.width != u32::MAX {
            return own;
        }
        vk::Extent2D {
            width: self.wanted.width.clamp(least.width, most.width),
            height: self.wanted.height.clamp(least.height, most.height),
        }
    }

    /// Returns true if a surface without a size of its own needs a new extent. Such a surface does not report changes.
    pub(crate) fn has_changed(&self, extent: vk::Extent2D) -> bool {
        self.x11.is_none() && self.wanted != extent
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: swapchains were destroyed before.
        unsafe { self.functions.destroy_surface(self.surface, None) };
    }
}

#[repr(C)]
struct ScreenIterator {
    data: *const Screen,
    rem: c_int,
    index: c_int,
}

/// The first fields of `xcb_screen_t`.
#[repr(C)]
struct Screen {
    root: u32,
    default_colormap: u32,
    white_pixel: u32,
    black_pixel: u32,
    current_input_masks: u32,
    pixels: [u16; 2],
    millimeters: [u16; 2],
    installed_maps: [u16; 2],
    root_visual: u32,
}

#[repr(C)]
struct Cookie {
    sequence: u32,
}

type Connect = unsafe extern "C" fn(*const c_char, *mut c_int) -> *mut c_void;
type HasError = unsafe extern "C" fn(*mut c_void) -> c_int;
type GetSetup = unsafe extern "C" fn(*mut c_void) -> *const c_void;
type Roots = unsafe extern "C" fn(*const c_void) -> ScreenIterator;
type GenerateId = unsafe extern "C" fn(*mut c_void) -> u32;
type CreateWindow = unsafe extern "C" fn(
    *mut c_void,
    u8,
    u32,
    u32,
    i16,
    i16,
    u16,
    u16,
    u16,
    u16,
    u32,
    u32,
    *const c_void,
) -> Cookie;
type MapWindow = unsafe extern "C" fn(*mut c_void, u32) -> Cookie;
type ConfigureWindow = unsafe extern "C" fn(*mut c_void, u32, u16, *const u32) -> Cookie;
type Flush = unsafe extern "C" fn(*mut c_void) -> c_int;
type Disconnect = unsafe extern "C" fn(*mut c_void);

/// `XCB_CONFIG_WINDOW_WIDTH` and `XCB_CONFIG_WINDOW_HEIGHT`.
const WIDTH_AND_HEIGHT: u16 = 4 | 8;

struct X11 {
    connection: *mut c_void,
    window: u32,
    library: libloading::Library,
}

impl X11 {
    /// Opens a window. Returns `None` without a display.
    fn open(size: vk::Extent2D) -> Result<Option<Self>> {
        // SAFETY: loading libxcb has no side effects.
        let library = unsafe { libloading::Library::new("libxcb.so.1") }?;
        // SAFETY: the types here and below match `xcb.h`.
        let connect = unsafe { library.get::<Connect>(b"xcb_connect\0") }?;
        // SAFETY: null selects the display of the environment.
        let connection = unsafe { connect(std::ptr::null(), std::ptr::null_mut()) };
        let mut x11 = Self { connection, window: 0, library };
        // SAFETY: see above.
        let has_error = unsafe { x11.library.get::<HasError>(b"xcb_connection_has_error\0") }?;
        // SAFETY: `xcb_connection_has_error` accepts every result of `xcb_connect`.
        if unsafe { has_error(connection) } != 0 {
            return Ok(None);
        }
        // SAFETY: see above.
        let get_setup = unsafe { x11.library.get::<GetSetup>(b"xcb_get_setup\0") }?;
        // SAFETY: the connection has no error.
        let setup = unsafe { get_setup(connection) };
        // SAFETY: see above.
        let roots = unsafe { x11.library.get::<Roots>(b"xcb_setup_roots_iterator\0") }?;
        // SAFETY: the setup belongs to the connection.
        let screens = unsafe { roots(setup) };
        // SAFETY: it is null or a screen, which lives as long as the connection.
        let screen = unsafe { screens.data.as_ref() }.filter(|_| screens.rem > 0).ok_or("no screen")?;
        // SAFETY: see above.
        let generate_id = unsafe { x11.library.get::<GenerateId>(b"xcb_generate_id\0") }?;
        // SAFETY: the connection is live.
        let window = unsafe { generate_id(connection) };
        // SAFETY: see above.
        let create = unsafe { x11.library.get::<CreateWindow>(b"xcb_create_window\0") }?;
        let (width, height) = (size.width.try_into()?, size.height.try_into()?);
        let (input_output, none) = (1, std::ptr::null());
        // SAFETY: the connection is live, and there are no values.
        unsafe {
            create(
                connection,
                0,
                window,
                screen.root,
                0,
                0,
                width,
                height,
                0,
                input_output,
                screen.root_visual,
                0,
                none,
            )
        };
        // SAFETY: see above.
        let map = unsafe { x11.library.get::<MapWindow>(b"xcb_map_window\0") }?;
        // SAFETY: the connection is live, and the window was just created.
        unsafe { map(connection, window) };
        x11.window = window;
        x11.flush()?;
        Ok(Some(x11))
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: see `open`.
        let flush = unsafe { self.library.get::<Flush>(b"xcb_flush\0") }?;
        // SAFETY: the connection is live.
        if unsafe { flush(self.connection) } > 0 {
            Ok(())
        } else {
            Err("the connection to the display was lost".into())
        }
    }

    fn resize(&self, size: vk::Extent2D) {
        // SAFETY: see `open`.
        let configure = unsafe { self.library.get::<ConfigureWindow>(b"xcb_configure_window\0") };
        if let Ok(configure) = configure {
            let values = [size.width, size.height];
            // SAFETY: the connection is live, and there is a value for each bit.
            unsafe { configure(self.connection, self.window, WIDTH_AND_HEIGHT, values.as_ptr()) };
        }
        // Presentation reports a lost display.
        let _ = self.flush();
    }
}

impl Drop for X11 {
    fn drop(&mut self) {
        // SAFETY: see `open`.
        if let Ok(disconnect) = unsafe { self.library.get::<Disconnect>(b"xcb_disconnect\0") } {
            // SAFETY: the connection is no longer used; this destroys the window too.
            unsafe { disconnect(self.connection) };
        }
    }
}
