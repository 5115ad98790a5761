//! Git's own files, read without git. Up to the first NUL the bytes are HEAD, then packed refs, settings and pointers.

use super::place::Place;
use ralph::store::project::{git, ignores};

pub fn check(bytes: &[u8]) {
    let place = Place::new();
    let cut = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (head, rest) = (&bytes[..cut], bytes.get(cut + 1..).unwrap_or_default());
    for (name, bytes) in [("HEAD", head), ("packed-refs", rest), ("config", rest)] {
        place.write(&format!("project/.git/{name}"), bytes);
    }
    read(&place);
    place.write("project/.git/commondir", rest);
    read(&place);
    place.write("linked/.git", head);
    let linked = place.path().join("linked");
    let _ =
        (git::head(&linked), git::is_linked_worktree(&linked), git::worktree(&place.project.root, &linked));
}

fn read(place: &Place) {
    let root = &place.project.root;
    if let Some(head) = git::head(root) {
        assert_eq!(head, head.trim(), "a name has no ends");
    }
    let _ = (git::has_worktrees(root), ignores::of_repository(root), ignores::of_user(&place.world, root));
}
