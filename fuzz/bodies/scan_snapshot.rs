//! The scanner's snapshot: a damaged one is not used, and what is read is written the same.

use ralph::scan::rewrite_snapshot;

pub fn check(bytes: &[u8]) {
    let Some(written) = rewrite_snapshot(bytes) else { return };
    assert_eq!(rewrite_snapshot(&written).as_ref(), Some(&written), "not read as it was written");
    assert_eq!(rewrite_snapshot(&[&written[..], b"x"].concat()), None, "more than a whole snapshot was read");
    for shorter in [&written[..written.len() - 1], &written[..written.len() / 2]] {
        assert_eq!(rewrite_snapshot(shorter), None, "half a snapshot was read as a whole one");
    }
}
