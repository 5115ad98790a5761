//! Applies the rules to one file.

use super::dotenv;
use super::file_kind;
use super::generated::marker;
use super::paths;
use super::{OwnRule, Rules};
use crate::core::guidance::finding::{Finding, Severity};
use crate::core::text::clean;
use crate::store::project::stable_hash as hash;
use std::fs::File;
use std::io::Read;

pub const GENERATED: &str = "generated";
const SECRET: &str = "secret";

/// Of larger files only the head is read: they are not sources that people edit.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The first part of a file, in which a marker or the beginning of a key has to be.
const HEAD_BYTES: u64 = 2048;
/// More findings of one rule in one file are not reported.
pub const MAX_FINDINGS_PER_FILE: usize = 3;

/// Returns whether a rule looks into the file at this relative path.
pub fn needs_content(rules: &Rules, path: &str) -> bool {
    let by_kind = [
        file_kind::is_config,
        file_kind::is_script,
        file_kind::is_env,
        file_kind::may_hold_key,
        file_kind::may_be_generated,
    ];
    rules.own.iter().any(|rule| rule.reads(path))
        || (!file_kind::is_specimen(path) && by_kind.iter().any(|is_kind| is_kind(path)))
}

/// Reads a file of this size, or of a huge one its head.
pub fn read(file: &mut File, size: u64) -> std::io::Result<Vec<u8>> {
    let length = if size <= MAX_FILE_BYTES { size } else { HEAD_BYTES };
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns what the rules find in a file with this path and these bytes; `None` if time is over before the last rule.
pub fn judge(rules: &Rules, path: &str, bytes: &[u8], is_over: impl Fn() -> bool) -> Option<Vec<Finding>> {
    let mut found = judge_by_kind(rules, path, bytes);
    let head = &bytes[..bytes.len().min(HEAD_BYTES as usize)];
    if head.is_empty() || memchr::memchr(0, head).is_some() {
        return Some(found);
    }
    for rule in rules.own.iter().filter(|rule| rule.reads(path)) {
        if is_over() {
            return None;
        }
        for at in rule.hits(bytes).take(MAX_FINDINGS_PER_FILE) {
            let (line, text) = line_at(bytes, at);
            found.push(own(rule, path, Some(line), &text));
        }
    }
    Some(found)
}

/// Returns what follows from the kind of the file, and which rules of the project name it.
fn judge_by_kind(rules: &Rules, path: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    let specimen = file_kind::is_specimen(path);
    if file_kind::is_env(path) && !specimen && !dotenv::is_harmless(bytes) {
        found.push(secret(path, "environment file with secrets", "Do not print, edit or commit it"));
    }
    for rule in rules.own.iter().filter(|rule| rule.names(path)) {
        found.push(own(rule, path, None, ""));
    }
    let head = &bytes[..bytes.len().min(HEAD_BYTES as usize)];
    if head.is_empty() || memchr::memchr(0, head).is_some() {
        return found;
    }
    if !specimen {
        if file_kind::may_hold_key(path) && is_private_key(head) {
            found.push(secret(path, "private key", "Do not print, copy or commit it"));
        }
        if let Some((line, text)) = file_kind::may_be_generated(path).then(|| marker(head)).flatten() {
            let advice = "Do not edit it: change its source or its generator";
            let what = "generated file".to_owned();
            found.push(finding(GENERATED, Severity::High, path, Some(line), &text, what, advice));
        }
        if file_kind::is_config(path) {
            found.extend(paths::homes(rules.home.as_deref(), path, bytes));
        }
        if file_kind::is_script(path) {
            found.extend(paths::fixed_directories(path, bytes));
        }
    }
    found
}

fn is_private_key(head: &[u8]) -> bool {
    let contains = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    head.starts_with(b"PuTTY-User-Key-File-") || (contains(b"-----BEGIN ") && contains(b"PRIVATE KEY-----"))
}

/// Makes a finding, whose id follows from the rule, the path and the content that was found.
pub fn finding(
    rule: &str,
    severity: Severity,
    path: &str,
    line: Option<u64>,
    content: &str,
    description: String,
    recommendation: &str,
) -> Finding {
    let hash = hash(format!("{rule}\0{path}\0{}", clean::line(content)).as_bytes());
    Finding {
        id: format!("{rule}-{:08x}", hash as u32),
        severity,
        category: rule.to_owned(),
        description,
        file: path.to_owned(),
        line,
        recommendation: recommendation.to_owned(),
    }
}

/// Makes a finding that names a secret by its path and holds nothing of its content.
fn secret(path: &str, what: &str, recommendation: &str) -> Finding {
    finding(SECRET, Severity::High, path, None, "", what.to_owned(), recommendation)
}

fn own(rule: &OwnRule, path: &str, line: Option<u64>, text: &str) -> Finding {
    finding(&rule.id, rule.severity, path, line, text, rule.message.clone(), "A rule of this project")
}

/// Returns the number, from 1, and the text of the line at a position.
pub fn line_at(bytes: &[u8], at: usize) -> (u64, String) {
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1;
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
    (line, String::from_utf8_lossy(&bytes[start..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::resolve;
    use std::path::Path;

    const HOME: &str = "/home/mira";

    /// Severity and category of what is found.
    fn found(home: &str, path: &str, text: &str) -> Vec<(Severity, String)> {
        let rules = Rules::new(Some(Path::new(home)), &resolve(&[]));
        let judge = |bytes: &[u8]| judge(&rules, path, bytes, || false).unwrap();
        let found = judge(text.as_bytes());
        if !needs_content(&rules, path) {
            assert_eq!(found, judge(b""), "{path} is judged by its path alone");
        }
        found.into_iter().map(|finding| (finding.severity, finding.category)).collect()
    }

    fn is_found(path: &str, text: &str, severity: Severity, category: &str) {
        assert_eq!(found(HOME, path, text), [(severity, category.to_owned())], "{path}: {text}");
    }

    fn is_fine(path: &str, text: &str) {
        assert_eq!(found(HOME, path, text), [], "{path}: {text}");
    }

    #[test]
    fn a_file_that_says_it_is_generated_is_found() {
        for (path, text) in [
            ("api.go", "// Code generated by protoc-gen-go. DO NOT EDIT.\n\npackage api\n"),
            ("a.rs", "/* automatically generated by rust-bindgen 0.72.1 */\n\npub const A: u32 = 1;\n"),
            ("a.rs", "// @generated automatically by Diesel CLI.\n\ndiesel::table! {}\n"),
            ("a.js", "// This file is @generated by `pnpm gen`.\n"),
            ("a.js", "\"use strict\";\n\n// GENERATED by tools/tables.js, do not edit.\n"),
            ("a.js", "// AUTO-GENERATED by tools/list.js\n"),
            ("a.rs", "// Copyright.\n\n// THIS IS A GENERATED FILE. PLEASE DO NOT EDIT.\n//! A module.\n"),
            ("a.h", "/*\nThis file is auto-generated from the public interface.\n*/\n"),
            (
                "a.h",
                "/******\n  This module is auto-generated from data files. DO NOT EDIT MANUALLY!\n******/\n",
            ),
            ("a.h", "#ifndef A_H\n#define A_H\n/* Generated automatically by makecrc() */\n"),
            ("a.h", "// This file is generated by make_tables.go.\n"),
            ("a.c", "/*\n * THIS FILE IS AUTOMATICALLY GENERATED; DO NOT EDIT.\n */\n"),
            ("a.S", "// This file is generated from a script. Do not edit\n// by hand.\n"),
            ("a.ts", "// Made with care. Do not\n// edit: generated from schema.graphql\n"),
            ("a.d.ts", "// DO NOT EDIT! This is a generated file. Edit its source instead.\n"),
            ("tables.rs", "// The following code was generated by \"tables.py\", do not edit directly\n"),
            ("ci.yml", "# This file was generated by gen_ci.py.\n"),
            ("a_pb2.py", "# -*- coding: utf-8 -*-\n# Generated by the compiler.  DO NOT EDIT!\n"),
            (
                "a.py",
                "\"\"\"Models.\n\nThis file is automatically generated; changes will be lost.\n\"\"\"\n",
            ),
            ("a.xml", "<!-- Autogenerated file. Do not modify. -->\n"),
            ("a.lua", "-- AUTO-GENERATED, don't edit\n"),
            ("a.py", "\"\"\"Schemas.\"\"\"\n# This file is generated by init_schemas.py\n"),
            (
                "a.swift",
                "import Foundation\n\n// NOTE: This file is generated by sds.py.\n// Do not edit it.\n",
            ),
            (
                "a.c",
                "#include \"a.h\"\n\n/*\n * This source file is generated with a command: do not\n * edit it.\n */\n",
            ),
        ] {
            is_found(path, text, Severity::High, GENERATED);
        }
    }

    #[test]
    fn a_file_about_generated_files_is_not_found() {
        let late = format!("{}// BEGIN GENERATED CODE. PLEASE DO NOT EDIT.\n", "let a = 1;\n".repeat(5));
        for (path, text) in [
            ("a.rs", late.as_str()),
            ("a.rs", "// BEGIN GENERATED CODE. PLEASE DO NOT EDIT.\n"),
            (
                "gen.py",
                "import a\nimport b\nA = 1\nB = 2\nT = \"\"\"\\\n# This is generated by gen.py.\n# Do not edit.\n",
            ),
            ("a.h.in", "// AUTO-GENERATED FILE - DO NOT EDIT DIRECTLY\n"),
            ("owners.py", "\"\"\"Owners.\"\"\"\nBASE = \"\"\"\n# This file is generated by owners.py\n"),
            ("gen.sh", "cat > a.rs <<END\n// This file is generated by gen.sh\n"),
            ("a.gotmpl", "// Code generated by x. DO NOT EDIT.\n"),
            ("alias.sh_in", "# File is auto-generated by cmake, do not edit.\n"),
            ("thirdparty/a.h", "// @generated\n"),
            (
                "A.java",
                "package a;\nclass A {\n    // This value is generated by the build\n    // DON'T MODIFY IT\n",
            ),
            ("a.cc", "#include \"a.h\"\n\n// This header is auto-generated by make.\n#include \"gen.h\"\n"),
            ("a.ts", "import { A } from './a';\n\n// AUTO-GENERATED by make-types\ntype B = 'a';\n"),
            (
                "a.cc",
                "// The code down to \"End generated code\" is auto generated code\n// and must not be edited.\n",
            ),
            ("libs.versions.toml", "# This file was generated by the Gradle 'init' task.\n"),
            ("qlty.toml", "# This file was automatically generated by `qlty init`.\n# You can modify it.\n"),
            ("page.j2", "# This file is generated by x. Do not edit.\n"),
            ("Cargo.toml", "# THIS FILE IS AUTOMATICALLY GENERATED BY CARGO\n"),
            ("yarn.lock", "# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.\n"),
            ("a.min.js", "/* @generated */\n"),
            ("vendor/x/a.go", "// Code generated by x. DO NOT EDIT.\n"),
            ("third_party/a.h", "// @generated\n"),
            ("Tests/a.swift", "// @generated\n"),
            ("a.js", "/**\n * Loads the map generated by the compiler.\n */\n"),
            ("a.rs", "// Field operations are generated by a tool,\n// and checked here.\n"),
            (
                "a.rs",
                "// Any copyright to the data below, which comes from\n// this file is generated from a list.\n",
            ),
            ("a.rs", "//! Finds `@generated` at the head of files.\n"),
            ("a.rs", "/// Used in generated code, do not call.\n"),
            ("Makefile", "# Do not edit the generated files by hand: run make gen\n"),
            ("0001_initial.py", "# Generated by Django 5.2 on 2026-01-01\n"),
            ("a.ts", "// Manual additions to make the generated types below work.\n"),
            ("a.rs", "// do not change the order\nfn a() {}\n"),
        ] {
            is_fine(path, text);
        }
    }

    #[test]
    fn a_home_directory_in_a_config_file_is_found() {
        for (path, text) in [
            ("a.toml", "path = \"/home/alice/src\"\n"),
            ("CMakeLists.txt", "include_directories(/home/alice/include)\n"),
            ("Makefile", "CFLAGS += -I/home/alice/include\n"),
            ("a.cfg", "path=C:\\Users\\alice\\src\n"),
            (".vscode/settings.json", r#"{"p": "C:\\Users\\alice\\x", "q": "C:\\Users\\alice\\y"}"#),
            ("config/app.yml", "dir: /Users/alice/data\n"),
            ("a.toml", "p = \"/home/alice/1\"\nq = \"/home/alice/2\"\n"),
            ("a.toml", "p = \"/home/user/src\"\n"),
            ("a.json", r#"{"p": "C:\\Users\\USER\\x"}"#),
            ("a.yml", "dir: /home/shared/data\n"),
            ("Makefile", "V := -v /home/alice/cache:/cache\n"),
            ("a.mk", "SRC = a@b /home/alice/x\n"),
        ] {
            is_found(path, text, Severity::High, "absolute-path");
        }
        for text in ["x = \"/home/mira/x\"\n", "x = \"-L/home/mira/lib\"\n", "x = \"a:/home/mira/x\"\n"] {
            is_found("a.toml", text, Severity::Critical, "absolute-path");
        }
        is_found("nginx.conf", "root /home/mira/www;\n", Severity::Critical, "absolute-path");
        let common = found("/root", "a.toml", "x = \"/root/.cache/x\"\n");
        assert_eq!(
            common,
            [(Severity::Critical, "absolute-path".to_owned())],
            "the user's own home, whatever its name"
        );
    }

    #[test]
    fn paths_that_belong_to_no_person_are_not_found() {
        for (path, text) in [
            ("appveyor.yml", "- C:\\Users\\someadmin\\x\n"),
            ("a.yml", "- C:\\Users\\appveyor\\.cargo\\bin\n"),
            (".travis.yml", "dir: /home/alice/x\n"),
            (".circleci/config.yml", "dir: /home/alice/x\n"),
            ("k8s/app.yaml", "mountPath: /home/alice/x\n"),
            ("openapi.yaml", "path: /home/news/today\n"),
            ("src/routes.json", "{\"to\": \"/home/news/today\"}\n"),
            ("locales/en.json", "{\"to\": \"/home/news/today\"}\n"),
            ("a.mk", "D = $(ROOT)/home/alice/x\nE = ${R}/home/alice/x\n"),
            ("a.toml", "# p = \"/home/alice/x\"\n"),
            ("build.gradle", "/*\n * ring=/Users/alice/.gnupg/secring.gpg\n */\n"),
            ("circle.yml", "- /Users/alice/Library/Caches\n"),
            ("a.yml", "- /Users/distiller/Library/Caches\n"),
            ("a.cmake", "pi@${HOST}:/home/alice/px4\n"),
            ("Makefile", "x:\n\tscp a $(WHO)@example.org:/home/mira/www\n"),
            ("Makefile", "C := -v cache:/home/mira/.cache --volume=b:/home/alice/b -v 'c:/home/alice/c'\n"),
            ("a.yml", "dir: /Users/Shared/data\n"),
            ("a.cfg", "p = \u{1b}:\\Users\\alice\\x\nq = 1:\\Users\\alice\\x\n"),
            ("a.json", r#"{"p": "C:\\Users\\Public\\x", "q": "/home/username/x"}"#),
            ("a.cfg", "p = /home/<user>/x\nq = /home/$USER/x\n"),
            ("dist/nginx.conf", "root /home/alice/live/public;\n"),
            ("config/logrotate.conf", "/home/alice/log/app.log\n"),
            ("a.toml", "u = \"https://example.org/home/alice/x\"\n"),
            ("src/main.rs", "let p = \"/home/alice/x\";\n"),
            ("vendor/a.toml", "p = \"/home/alice/x\"\n"),
        ] {
            is_fine(path, text);
        }
    }

    #[test]
    fn secrets_are_found_and_plain_settings_are_not() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n";
        for (path, text) in [
            (".env", "PASSWORD=hunter2\n"),
            ("app/.env.production", "STRIPE=sk_live_4eC39HqLyj\n"),
            (".env", ""),
            ("certs/server.key", key),
            ("id_rsa", key),
            ("a.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\n"),
            ("latest/attest.key", key),
        ] {
            is_found(path, text, Severity::High, SECRET);
        }
        for (path, text) in [
            (".env", "PORT=3000\nNODE_ENV=development\n"),
            (".env.example", "PASSWORD=hunter2\n"),
            ("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIE\n"),
            ("server.key", "-----BEGIN PUBLIC KEY-----\nMIIE\n"),
            ("test/server.key", key),
            ("third_party/x/server.key", key),
            ("tools/test_keys/rsa2048.pem", key),
            ("src/sshd/test-dsa.key", key),
            ("servertest/localhost.key", key),
            (".env.local.demo", "SECRET=not-a-secret\n"),
        ] {
            is_fine(path, text);
        }
    }

    #[test]
    fn scripts_in_fixed_directories_are_medium() {
        is_found("deploy.sh", "#!/bin/sh\ncd /srv/app && make\n", Severity::Medium, "rigid-folder");
        is_found("Makefile", "x:\n\t@cd /opt/app; make\n", Severity::Medium, "rigid-folder");
        is_found("deploy.sh", "cd \"/opt/my app\"\n", Severity::Medium, "rigid-folder");
        for text in [
            "cd src\n",
            "cd /tmp/x\n",
            "cd \"/tmp/x\"\n",
            "# cd /srv/app\n",
            "abcd /srv/app\n",
            "cd \"$ROOT\"/opt/\n",
        ] {
            is_fine("deploy.sh", text);
        }
    }

    #[test]
    fn of_a_huge_file_only_the_head_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge.toml");
        File::create(&path).unwrap().set_len(2 << 30).unwrap();
        let read_as = |size| read(&mut File::open(&path).unwrap(), size).unwrap();
        assert_eq!((read_as(2 << 30).len() as u64, read_as(3000).len()), (HEAD_BYTES, 3000));
        // The file grew or shrank after its size was read.
        std::fs::write(&path, "abc").unwrap();
        assert_eq!((read_as(2), read_as(9)), (b"ab".to_vec(), b"abc".to_vec()));
    }
}
