//! Environment files: tells plain settings from secrets.

/// Returns whether every value is a plain setting and no name suggests a secret. An empty file is about to be filled,
/// so it is not harmless.
pub fn is_harmless(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut settings = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.strip_prefix("export ").unwrap_or(line).split_once('='))
        .peekable();
    settings.peek().is_some()
        && settings.all(|setting| setting.is_some_and(|(name, value)| is_plain(name.trim(), value.trim())))
}

fn is_plain(name: &str, value: &str) -> bool {
    const SECRET_NAMES: [&str; 10] =
        ["KEY", "SECRET", "TOKEN", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "HOOK", "SALT"];
    const SETTING_NAMES: [&str; 21] = [
        "PORT", "HOST", "DOMAIN", "BIND", "ENV", "MODE", "LEVEL", "LOG", "DEBUG", "URL", "URI", "DSN",
        "PATH", "DIR", "DATA", "SKIP", "VERSION", "LANG", "TIMEOUT", "BROWSER", "REGION",
    ];
    const MAX_WORD_BYTES: usize = 16;
    let name = name.to_ascii_uppercase();
    let value = value.trim_matches(['"', '\'']);
    let word = value.len() <= MAX_WORD_BYTES
        && !(value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic()));
    let place = value.contains("://") || value.starts_with(['/', '.']);
    let refers = value.starts_with("${") && value.ends_with('}');
    let query = value.split_once(['?', ';']).map_or(String::new(), |(_, query)| query.to_ascii_uppercase());
    let secret_name = SECRET_NAMES.iter().any(|part| name.contains(part) || query.contains(part));
    let switch = ["true", "false"].contains(&value);
    let setting = SETTING_NAMES.iter().any(|part| name.contains(part));
    value.is_empty()
        || refers
        || switch
        || (setting && !secret_name && !value.contains('@') && (word || place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_settings_are_no_secret() {
        for (text, harmless) in [
            ("PORT=3000\n", true),
            ("# dev\nSKIP_CHECK=true\nNODE_ENV=\"development\"\n", true),
            ("API_URL=https://api.example.org/v1\nDATA=./data\n", true),
            ("export LOG_LEVEL=info\n", true),
            ("API_KEY=\nPORT=1\n", true),
            ("API_KEY=${API_KEY}\n", true),
            ("LOCAL_DOMAIN=app.local\nBIND=0.0.0.0\nDB_HOST=/var/run/postgresql/\n", true),
            ("DEFAULT_URI=http://localhost\nMAILER_DSN=null://null\n", true),
            ("SENTRY_DSN=https://0a1b2c@sentry.example.org/1\n", false),
            ("DB_URL=jdbc:mysql://localhost/app?user=a&password=b\n", false),
            ("DB_URL=postgres://localhost/app?sslmode=disable\n", true),
            ("SLACK_WEBHOOK_URL=https://hooks.example.org/T0/B0/x1\n", false),
            ("API_KEY=abc\n", false),
            ("PASSWORD=hunter2\n", false),
            ("DATABASE_URL=postgres://me:pw@host/db\n", false),
            ("STRIPE=sk_live_4eC39HqLyjWDarjtT1\n", false),
            ("ID=a1b2c3\n", false),
            ("A=1\n", false),
            ("PORT=3000\nnot a setting\n", false),
            ("", false),
            ("# nothing yet\n", false),
        ] {
            assert_eq!(is_harmless(text.as_bytes()), harmless, "{text}");
        }
        assert!(!is_harmless(b"\xff=1\n"));
    }
}
