//! The address of a notification service: what Ralph must know of a URL.

const MAX_BYTES: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_https: bool,
    /// User, host and port, as given.
    authority: String,
    pub host: String,
    path: String,
    /// With its question mark; empty if there is none.
    query: String,
}

impl Address {
    /// Parses a URL, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Address, &'static str> {
        if text.len() > MAX_BYTES {
            return Err("is longer than 2000 characters");
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '\\')) {
            return Err("has characters that an address cannot have");
        }
        let scheme = |name: &str| {
            let begins = text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
            begins.then(|| &text[name.len()..])
        };
        let (is_https, rest) = match (scheme("https://"), scheme("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err("does not begin with https:// or http://"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or_default();
        let bare = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        if bare.is_empty() {
            return Err("names no host");
        }
        Ok(Address {
            is_https,
            authority: authority.to_owned(),
            host: bare.to_ascii_lowercase(),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }

    fn with_path(&self, path: &str, query: &str) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{path}{query}", self.authority)
    }

    /// Returns the folder and the topic of an ntfy address.
    fn ntfy(&self) -> Result<(&str, &str), &'static str> {
        let (folder, topic) = self.path.trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        match !topic.is_empty() && topic.len() <= 64 && topic.chars().all(is_valid) {
            true => Ok((folder, topic)),
            false => Err("the address has no ntfy topic; use https://HOST/TOPIC"),
        }
    }

    /// Returns the topic of an ntfy address.
    pub fn topic(&self) -> Result<&str, &'static str> {
        self.ntfy().map(|(_, topic)| topic)
    }

    /// Returns where JSON for an ntfy topic is sent: the address without the topic.
    pub fn ntfy_publish(&self) -> Result<String, &'static str> {
        self.ntfy().map(|(folder, _)| self.with_path(&format!("{folder}/"), &self.query))
    }

    /// Returns where the messages of an ntfy topic since a moment or an id are read.
    pub fn ntfy_poll(&self, since: &str) -> Result<String, &'static str> {
        let (folder, topic) = self.ntfy()?;
        let more = self.query.strip_prefix('?').map_or_else(String::new, |query| format!("&{query}"));
        Ok(self.with_path(&format!("{folder}/{topic}/json"), &format!("?poll=1&since={since}{more}")))
    }

    /// Returns whether what is sent there can be read on the way.
    pub fn is_open(&self) -> bool {
        !self.is_https && !matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address = Address::parse("https://u:p@NTFY.example:8443/base/my-topic?auth=x#f").unwrap();
        assert_eq!((address.host.as_str(), address.topic()), ("ntfy.example", Ok("my-topic")));
        assert_eq!(address.ntfy_publish().unwrap(), "https://u:p@NTFY.example:8443/base/?auth=x");
        assert_eq!(
            address.ntfy_poll("5").unwrap(),
            "https://u:p@NTFY.example:8443/base/my-topic/json?poll=1&since=5&auth=x"
        );
        let plain = Address::parse("http://[::1]:80/t").unwrap();
        assert_eq!((plain.host.as_str(), plain.is_open()), ("::1", false));
        assert!(Address::parse("http://example.org/t").unwrap().is_open());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("https://h/{}", "x".repeat(2000));
        for text in [
            "",
            "ntfy.sh/t",
            "ftp://h/t",
            "https://",
            "https:///t",
            "https://h/a b",
            "https://h/\r\nX: y",
            &long,
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        for text in ["https://h", "https://h/", "https://h/a.b", "https://h/a%0d"] {
            assert!(Address::parse(text).unwrap().topic().is_err(), "{text}");
        }
    }
}
