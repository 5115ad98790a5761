//! What a file is for, as far as its path tells.

// Word lists are easier to read and to extend in rows than with one word a line.

/// Returns whether a file configures a build or a tool: an absolute path in it ties the project to a machine.
pub fn is_config(path: &str) -> bool {
    #[rustfmt::skip]
    const NAMES: [&str; 11] = [
        "Makefile", "GNUmakefile", "makefile", "CMakeLists.txt", "meson.build", "BUILD", "WORKSPACE", "Justfile",
        "justfile", ".npmrc", ".gitmodules",
    ];
    #[rustfmt::skip]
    const EXTENSIONS: [&str; 17] = [
        "toml", "yaml", "yml", "json", "ini", "cfg", "conf", "properties", "mk", "cmake", "gradle", "kts", "bazel",
        "bzl", "csproj", "vcxproj", "xcconfig",
    ];
    let name = name(path);
    let is_named = NAMES.contains(&name) || EXTENSIONS.contains(&extension(name));
    is_named && !is_lock(name) && !is_for_another_machine(path)
}

/// Returns whether the paths in a file are those of a container or a build machine, or permissions of this machine.
fn is_for_another_machine(path: &str) -> bool {
    #[rustfmt::skip]
    const PREFIXES: [&str; 14] = [
        "dockerfile", "docker-compose", "compose.", "devcontainer", "appveyor", ".appveyor", ".travis", "circle.yml",
        ".gitlab-ci", ".cirrus", ".drone", "azure-pipelines", "bitbucket-pipelines", "cloudbuild",
    ];
    #[rustfmt::skip]
    const DIRECTORIES: [&str; 13] = [
        ".devcontainer", ".claude", ".github", ".gitlab", ".circleci", ".buildkite", ".azure", "docker", ".docker",
        "k8s", "kubernetes", "helm", "ansible",
    ];
    let name = name(path).to_ascii_lowercase();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_in(path, &DIRECTORIES)
}

/// Returns whether a file holds addresses of pages, which look like paths of homes: `/home/news/`.
pub fn holds_routes(path: &str) -> bool {
    const PARTS: [&str; 8] =
        ["openapi", "swagger", "route", "sitemap", "redirect", "navigation", "vercel.json", "firebase.json"];
    const DIRECTORIES: [&str; 8] =
        ["i18n", "locales", "locale", "translations", "lang", "content", "assets", "public"];
    let name = name(path).to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || is_in(path, &DIRECTORIES)
}

/// Returns whether a file configures a server: homes in it are those of the server's accounts.
pub fn is_for_a_server(path: &str) -> bool {
    let name = name(path).to_ascii_lowercase();
    let servers = ["nginx", "logrotate", "supervisor", "apache"];
    name.ends_with(".conf") && servers.iter().any(|part| name.contains(part))
}

pub fn is_script(path: &str) -> bool {
    let name = name(path);
    matches!(extension(name), "sh" | "bash" | "zsh" | "mk")
        || matches!(name, "Makefile" | "GNUmakefile" | "makefile" | "Justfile" | "justfile")
}

/// Returns whether it is a lock file, which is known to be generated.
pub fn is_lock(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let names = ["npm-shrinkwrap.json", "go.sum", "gradle.lockfile", "packages.lock.json"];
    let suffixes = [".lock", "-lock.json", "-lock.yaml"];
    names.contains(&name.as_str()) || suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// Returns whether it is `.env` or one of its variants, except for examples that are meant to be read.
pub fn is_env(path: &str) -> bool {
    let examples = ["example", "sample", "template", "dist", "defaults", "schema", "test", "ci", "demo"];
    let name = name(path);
    let is_variant = |variant: &str| !variant.split('.').any(|part| examples.contains(&part));
    name == ".env" || name.strip_prefix(".env.").is_some_and(is_variant)
}

/// Returns whether it is named like a private key, and not like one of a test.
pub fn may_hold_key(path: &str) -> bool {
    let name = name(path);
    let is_named =
        matches!(extension(name), "pem" | "key" | "ppk") || (name.starts_with("id_") && !name.contains('.'));
    is_named && !path.split('/').any(is_for_a_test)
}

/// Returns whether a part of a path says that keys in it are public: `test_keys`, `test-dsa.key`, `caddytest`.
fn is_for_a_test(part: &str) -> bool {
    let part = part.to_ascii_lowercase();
    part.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let ends_in_test = word.strip_suffix("test").is_some_and(|stem| !["la", "con", "at"].contains(&stem));
        ends_in_test || ["tests", "testing", "dummy", "example", "snakeoil"].contains(&word)
    })
}

/// Returns whether a marker in the file would be about the file itself.
pub fn may_be_generated(path: &str) -> bool {
    const PROSE: [&str; 9] = ["md", "markdown", "mdx", "rst", "txt", "adoc", "html", "json", "svg"];
    // What is made from a template is generated, the template is not.
    const TEMPLATES: [&str; 15] = [
        "in", "tmpl", "gotmpl", "tpl", "template", "stg", "j2", "jinja", "jinja2", "mustache", "hbs", "ejs",
        "erb", "tera", "orig",
    ];
    const NOT_TEXT: [&str; 38] = [
        "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "avif", "pdf", "zip", "gz", "xz", "bz2", "zst",
        "tar", "jar", "wasm", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "webm", "wav", "ogg", "so",
        "a", "o", "dll", "dylib", "exe", "bin", "class", "pyc", "map", "csv",
    ];
    let name = name(path);
    let extension = extension(name);
    let is_packed = name.contains(".min.") || name.contains(".bundle.");
    !is_packed
        && !["LICENSE", "Cargo.toml"].contains(&name)
        && !extension.ends_with("_in")
        && ![&PROSE[..], &TEMPLATES, &NOT_TEXT].iter().any(|list| list.contains(&extension))
        && !is_lock(name)
}

/// Returns whether a file belongs to tests, examples or vendored code: keys, paths and markers in it mean nothing.
pub fn is_specimen(path: &str) -> bool {
    #[rustfmt::skip]
    const DIRECTORIES: [&str; 35] = [
        "test", "tests", "__tests__", "testing", "fixtures", "__fixtures__", "fixture", "testdata", "test-data",
        "test_data", "testcases", "examples", "example", "samples", "sample", "demo", "demos", "snapshots",
        "__snapshots__", "__mocks__", "mocks", "golden", "cassettes", "fuzz", "benches", "spec", "specs", "docs",
        "vendor", "vendored", "third_party", "third-party", "thirdparty", "bower_components", "pods",
    ];
    is_in(path, &DIRECTORIES)
}

fn is_in(path: &str, directories: &[&str]) -> bool {
    let parents = path.split('/').rev().skip(1);
    parents.into_iter().any(|parent| directories.iter().any(|name| parent.eq_ignore_ascii_case(name)))
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
    fn a_path_tells_the_kind_of_a_file() {
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
