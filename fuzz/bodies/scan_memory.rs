//! The scanner's memory: damaged is none, and what is read is written the same.

use ralph::scan::rewrite_memory;

pub fn check(bytes: &[u8]) {
    let Some(written) = rewrite_memory(bytes) else { return };
    assert!(written.len() <= bytes.len(), "more was written than there was");
    assert_eq!(rewrite_memory(&written).as_ref(), Some(&written), "not read as it was written");
    assert_eq!(rewrite_memory(&[&written[..], b"x"].concat()), None, "more than a whole memory was taken");
    for shorter in [&written[..written.len() - 1], &written[..written.len() / 2]] {
        assert_eq!(rewrite_memory(shorter), None, "half a memory was taken for a whole one");
    }
}
