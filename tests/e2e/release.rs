//! The release archive is complete, and Claude Code loads it as a plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Client, Session};
use crate::messages_api::Api;
use crate::ralph::{replies, working};

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Packs the programs under test, and unpacks the archive.
fn unpacked(dir: &Path) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/release");
    let programs = Path::new(env!("CARGO_BIN_EXE_ralph")).parent().unwrap();
    let told = run(Command::new(script).arg("--programs").arg(programs).arg("--out").arg(dir));
    let archive = PathBuf::from(told.lines().next().unwrap());
    assert!(
        run(Command::new("sha256sum").arg("-c").arg(told.lines().nth(1).unwrap()).current_dir(dir))
            .contains("OK")
    );
    run(Command::new("tar").arg("-xzf").arg(&archive).current_dir(dir));
    dir.join(archive.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz"))
}

#[test]
fn claude_code_runs_a_loop_with_the_unpacked_archive() {
    let Some(client) = Client::find() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plugin = unpacked(dir.path());
    for file in
        ["man/man1/ralph-run.1", "completions/ralph.bash", "completions/_ralph", "LICENSE-MIT", "README.md"]
    {
        assert!(plugin.join(file).metadata().is_ok_and(|file| file.len() > 100), "{file}");
    }
    assert!(run(Command::new(plugin.join("bin/ralph")).arg("--version")).starts_with("ralph "));

    let api = Api::start(replies([working("one"), working("two")]));
    let session = Session::new(&client, &api).plugin(&plugin).allow("Bash");
    let told = session.print("/ralph:start make it --max-iterations 2").system_messages().join("\n");
    assert!(told.contains("Ralph ended (max-iterations)"), "{told}");
}
