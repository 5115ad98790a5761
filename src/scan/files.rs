//! What a file is, as far as its name tells.

/// Files by which a build or a tool is configured: an absolute path in one binds the project to a machine.
pub fn is_config(path: &str) -> bool {
    let name = name(path);
    let extension = extension(name);
    // Paths in there are paths in a container, or permissions of this very machine.
    let elsewhere = ["dockerfile", "docker-compose", "compose.", "devcontainer"];
    let lower = name.to_ascii_lowercase();
    if elsewhere.iter().any(|part| lower.starts_with(part))
        || in_folder(path, &[".devcontainer", ".claude", ".github"])
    {
        return false;
    }
    const NAMES: [&str; 11] = [
        "Makefile",
        "GNUmakefile",
        "makefile",
        "CMakeLists.txt",
        "meson.build",
        "BUILD",
        "WORKSPACE",
        "Justfile",
        "justfile",
        ".npmrc",
        ".gitmodules",
    ];
    const EXTENSIONS: [&str; 17] = [
        "toml",
        "yaml",
        "yml",
        "json",
        "ini",
        "cfg",
        "conf",
        "properties",
        "mk",
        "cmake",
        "gradle",
        "kts",
        "bazel",
        "bzl",
        "csproj",
        "vcxproj",
        "xcconfig",
    ];
    !is_lock(name) && (NAMES.contains(&name) || EXTENSIONS.contains(&extension))
}

pub fn is_script(path: &str) -> bool {
    let name = name(path);
    matches!(extension(name), "sh" | "bash" | "zsh" | "mk")
        || matches!(name, "Makefile" | "GNUmakefile" | "makefile" | "Justfile" | "justfile")
}

/// Lock files say that they are generated; everybody knows.
pub fn is_lock(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with(".lock")
        || lower.ends_with("-lock.json")
        || lower.ends_with("-lock.yaml")
        || matches!(
            lower.as_str(),
            "npm-shrinkwrap.json" | "go.sum" | "gradle.lockfile" | "packages.lock.json"
        )
}

/// `.env` and its kin, but not the examples that are meant to be read.
pub fn is_env(path: &str) -> bool {
    let name = name(path);
    let harmless = ["example", "sample", "template", "dist", "defaults", "schema", "test", "ci"];
    name == ".env"
        || name
            .strip_prefix(".env.")
            .is_some_and(|kind| !kind.split('.').any(|part| harmless.contains(&part)))
}

/// Names under which private keys are kept.
pub fn may_hold_key(path: &str) -> bool {
    let name = name(path);
    matches!(extension(name), "pem" | "key" | "ppk") || (name.starts_with("id_") && !name.contains('.'))
}

pub fn may_be_generated(path: &str) -> bool {
    let name = name(path);
    const PROSE: [&str; 8] = ["md", "markdown", "rst", "txt", "adoc", "html", "json", "svg"];
    !is_lock(name) && !PROSE.contains(&extension(name)) && name != "LICENSE"
}

/// Tests and examples hold keys, paths and markers that mean nothing.
pub fn is_specimen(path: &str) -> bool {
    const FOLDERS: [&str; 17] = [
        "test",
        "tests",
        "__tests__",
        "testing",
        "fixtures",
        "__fixtures__",
        "fixture",
        "testdata",
        "test-data",
        "examples",
        "example",
        "samples",
        "snapshots",
        "__snapshots__",
        "benches",
        "spec",
        "docs",
    ];
    in_folder(path, &FOLDERS)
}

fn in_folder(path: &str, folders: &[&str]) -> bool {
    let mut parts = path.split('/').rev();
    parts.next();
    parts.any(|part| folders.contains(&part))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(stem, extension)| if stem.is_empty() { "" } else { extension })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        for (path, expected) in [
            ("Cargo.toml", true),
            ("a/b/Makefile", true),
            (".npmrc", true),
            ("x.gradle.kts", true),
            ("package-lock.json", false),
            ("Dockerfile", false),
            ("docker-compose.yml", false),
            (".claude/settings.json", false),
            ("src/main.rs", false),
            (".github/workflows/ci.yml", false),
            ("poetry.lock", false),
        ] {
            assert_eq!(is_config(path), expected, "{path}");
        }
        for (path, expected) in [
            (".env", true),
            ("app/.env", true),
            (".env.local", true),
            (".env.production", true),
            (".env.example", false),
            (".env.sample", false),
            (".envrc", false),
            ("x.env", false),
            (".env.production.example", false),
        ] {
            assert_eq!(is_env(path), expected, "{path}");
        }
        assert!(
            may_hold_key("id_ed25519") && may_hold_key("certs/server.key") && !may_hold_key("id_rsa.pub")
        );
        assert!(
            is_specimen("tests/keys/a.pem") && !is_specimen("src/tests.rs") && !is_specimen("contest/a.pem")
        );
        assert!(
            may_be_generated("src/api.rs")
                && !may_be_generated("Cargo.lock")
                && !may_be_generated("README.md")
        );
    }
}
