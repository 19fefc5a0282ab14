//! What the standard library would bring and this binary does without: its backtraces and
//! formatting alone are a third of the size that an agent in every sandbox may have.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt::Write;
use core::panic::PanicInfo;

use crate::sys::fd::write_all_blocking;

struct LibcAllocator;

unsafe impl GlobalAlloc for LibcAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut pointer = core::ptr::null_mut();
        let align = layout.align().max(size_of::<usize>());
        if align <= 16 {
            return unsafe { libc::malloc(layout.size()).cast() };
        }
        match unsafe { libc::posix_memalign(&mut pointer, align, layout.size()) } {
            0 => pointer.cast(),
            _ => core::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 16 {
            return unsafe { libc::calloc(1, layout.size()).cast() };
        }
        let pointer = unsafe { self.alloc(layout) };
        if !pointer.is_null() {
            unsafe { core::ptr::write_bytes(pointer, 0, layout.size()) };
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= 16 {
            return unsafe { libc::realloc(pointer.cast(), size).cast() };
        }
        let grown = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !grown.is_null() {
            let kept = layout.size().min(size);
            unsafe { core::ptr::copy_nonoverlapping(pointer, grown, kept) };
            unsafe { self.dealloc(pointer, layout) };
        }
        grown
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _layout: Layout) {
        unsafe { libc::free(pointer.cast()) }
    }
}

#[global_allocator]
static ALLOCATOR: LibcAllocator = LibcAllocator;

/// The last words go to fd 2; the sandbox ends with its first process.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    struct LastWords;
    impl Write for LastWords {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            write_all_blocking(2, text.as_bytes());
            Ok(())
        }
    }
    let place = info.location().map_or(("?", 0), |location| (location.file(), location.line()));
    let _ = writeln!(LastWords, "agent: panic at {}:{}: {}", place.0, place.1, info.message());
    unsafe { libc::_exit(70) }
}

// Named by the prebuilt `alloc` and by the C library for unwinding, which happens nowhere here:
// a panic ends the process, and no thread is cancelled.

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn __gcc_personality_v0() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    unsafe { libc::abort() }
}
