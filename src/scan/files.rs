//! What a file is, as far as its name tells.

/// Files by which a build or a tool is configured: an absolute path in one binds the project to a machine.
pub fn is_config(path: &str) -> bool {
    let name = name(path);
    let extension = extension(name);
    if is_for_elsewhere(path) {
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

/// Paths in there are paths in a container or on a build machine, or permissions of this very machine.
fn is_for_elsewhere(path: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "dockerfile",
        "docker-compose",
        "compose.",
        "devcontainer",
        "appveyor",
        ".appveyor",
        ".travis",
        "circle.yml",
        ".gitlab-ci",
        ".cirrus",
        ".drone",
        "azure-pipelines",
        "bitbucket-pipelines",
        "cloudbuild",
    ];
    const FOLDERS: [&str; 13] = [
        ".devcontainer",
        ".claude",
        ".github",
        ".gitlab",
        ".circleci",
        ".buildkite",
        ".azure",
        "docker",
        ".docker",
        "k8s",
        "kubernetes",
        "helm",
        "ansible",
    ];
    let name = name(path).to_ascii_lowercase();
    BEGINNINGS.iter().any(|part| name.starts_with(part)) || in_folder(path, &FOLDERS)
}

/// Addresses of pages look like paths of homes: `/home/news/` is somebody's only in other files.
pub fn holds_routes(path: &str) -> bool {
    const PARTS: [&str; 8] =
        ["openapi", "swagger", "route", "sitemap", "redirect", "navigation", "vercel.json", "firebase.json"];
    const FOLDERS: [&str; 8] =
        ["i18n", "locales", "locale", "translations", "lang", "content", "assets", "public"];
    let name = name(path).to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || in_folder(path, &FOLDERS)
}

/// Settings of the machine that serves: homes in there are those of its accounts.
pub fn is_for_a_server(path: &str) -> bool {
    const PARTS: [&str; 4] = ["nginx", "logrotate", "supervisor", "apache"];
    let name = name(path).to_ascii_lowercase();
    name.ends_with(".conf") && PARTS.iter().any(|part| name.contains(part))
}

/// Files that we write or that speak to us: no work of the project.
pub fn is_ours(path: &str) -> bool {
    const BEGINNINGS: [&str; 7] = [
        ".claude/ralph-state.",
        "ralph/logs/",
        "ralph/run.lock",
        ".claude/ralph-config.",
        "ralph/blocked.txt",
        "ralph/decide.txt",
        "ralph/answered/",
    ];
    BEGINNINGS.iter().any(|part| path.starts_with(part))
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
    let harmless = ["example", "sample", "template", "dist", "defaults", "schema", "test", "ci", "demo"];
    name == ".env"
        || name
            .strip_prefix(".env.")
            .is_some_and(|kind| !kind.split('.').any(|part| harmless.contains(&part)))
}

/// Names under which private keys are kept.
pub fn may_hold_key(path: &str) -> bool {
    let name = name(path);
    let named =
        matches!(extension(name), "pem" | "key" | "ppk") || (name.starts_with("id_") && !name.contains('.'));
    named && !path.split('/').any(is_of_a_test)
}

/// `test_keys`, `test-dsa.key`, `caddytest`: made to be seen.
fn is_of_a_test(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    part.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let kind = word.strip_suffix("test").is_some_and(|of| !["la", "con", "at"].contains(&of));
        kind || ["tests", "testing", "dummy", "example", "snakeoil"].contains(&word)
    })
}

/// A marker in it would speak of the file itself.
pub fn may_be_generated(path: &str) -> bool {
    let name = name(path);
    const PROSE: [&str; 9] = ["md", "markdown", "mdx", "rst", "txt", "adoc", "html", "json", "svg"];
    // What is made of a template is generated, the template is not.
    const TEMPLATES: [&str; 15] = [
        "in", "tmpl", "gotmpl", "tpl", "template", "stg", "j2", "jinja", "jinja2", "mustache", "hbs", "ejs",
        "erb", "tera", "orig",
    ];
    const NO_TEXT: [&str; 38] = [
        "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "avif", "pdf", "zip", "gz", "xz", "bz2", "zst",
        "tar", "jar", "wasm", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "webm", "wav", "ogg", "so",
        "a", "o", "dll", "dylib", "exe", "bin", "class", "pyc", "map", "csv",
    ];
    let extension = extension(name);
    let packed = name.contains(".min.") || name.contains(".bundle.");
    let named = ["LICENSE", "Cargo.toml"].contains(&name);
    !named
        && !packed
        && !extension.ends_with("_in")
        && ![&PROSE[..], &TEMPLATES, &NO_TEXT].iter().any(|list| list.contains(&extension))
        && !is_lock(name)
}

/// Tests, examples and other people's code hold keys, paths and markers that mean nothing.
pub fn is_specimen(path: &str) -> bool {
    const FOLDERS: [&str; 35] = [
        "test",
        "tests",
        "__tests__",
        "testing",
        "fixtures",
        "__fixtures__",
        "fixture",
        "testdata",
        "test-data",
        "test_data",
        "testcases",
        "examples",
        "example",
        "samples",
        "sample",
        "demo",
        "demos",
        "snapshots",
        "__snapshots__",
        "__mocks__",
        "mocks",
        "golden",
        "cassettes",
        "fuzz",
        "benches",
        "spec",
        "specs",
        "docs",
        "vendor",
        "vendored",
        "third_party",
        "third-party",
        "thirdparty",
        "bower_components",
        "pods",
    ];
    in_folder(path, &FOLDERS)
}

fn in_folder(path: &str, folders: &[&str]) -> bool {
    let mut parts = path.split('/').rev();
    parts.next();
    parts.any(|part| folders.iter().any(|folder| part.eq_ignore_ascii_case(folder)))
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
