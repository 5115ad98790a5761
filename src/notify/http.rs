//! One HTTP request: bounded in time and size, without redirects, which would carry secrets to another place.

use crate::store::file;
use crate::store::world;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

const MAX_ANSWER_BYTES: u64 = 256 << 10;
const MAX_CERTIFICATES_BYTES: u64 = 16 << 20;

/// What a service answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// The beginning of it.
    pub body: Vec<u8>,
}

fn agent(limit: Duration) -> Result<ureq::Agent, String> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")));
    let config = match world::text("SSL_CERT_FILE") {
        Some(path) => {
            config.tls_config(TlsConfig::builder().root_certs(certificates(Path::new(&path))?).build())
        }
        None => config,
    };
    Ok(config.build().new_agent())
}

/// Reads the certificates of the user's own authority.
fn certificates(path: &Path) -> Result<RootCerts, String> {
    let wrong = |why: String| format!("SSL_CERT_FILE {}: {why}", path.display());
    let bytes =
        file::read_bounded(path, MAX_CERTIFICATES_BYTES).map_err(|error| wrong(format!("{error:#}")))?;
    let bytes = bytes.ok_or_else(|| wrong("is not there".into()))?;
    let of = |item| if let Ok(PemItem::Certificate(certificate)) = item { Some(certificate) } else { None };
    let found: Vec<Certificate> = parse_pem(&bytes).filter_map(of).collect();
    if found.is_empty() {
        Err(wrong("has no certificate".into()))
    } else {
        Ok(RootCerts::Specific(Arc::new(found)))
    }
}

pub fn post(url: &str, json: &[u8], limit: Duration) -> Result<Response, String> {
    let request = agent(limit)?.post(url).header("Content-Type", "application/json");
    answer(request.send(json))
}

pub fn get(url: &str, limit: Duration) -> Result<Response, String> {
    answer(agent(limit)?.get(url).call())
}

fn answer(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Response, String> {
    use std::io::Read;
    let mut answer = answer.map_err(words)?;
    let mut body = Vec::new();
    let read = answer.body_mut().as_reader().take(MAX_ANSWER_BYTES).read_to_end(&mut body);
    read.map_err(|error| format!("the answer broke off: {error}"))?;
    Ok(Response { status: answer.status().as_u16(), body })
}

/// Returns an error in words, without the address: its path may be a secret.
fn words(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer within the time limit".into(),
        ureq::Error::HostNotFound => "the host was not found".into(),
        ureq::Error::ConnectionFailed => "no connection".into(),
        ureq::Error::Io(error) => format!("no connection: {error}"),
        ureq::Error::BadUri(_) => "the address is not valid".into(),
        other => other.to_string(),
    }
}
