//! What a notification service gets: one JSON object, in its own form.

use super::address::Address;
use super::{Notice, NotificationEvent};
use crate::core::outcome::Outcome;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Everything that is known, by name.
    Json,
    Ntfy,
    Slack,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Ntfy => "ntfy",
            Format::Slack => "slack",
        }
    }

    /// Returns the format that was set; `auto` is by the host.
    pub fn of(setting: &str, address: &Address) -> Format {
        match setting {
            "json" => Format::Json,
            "ntfy" => Format::Ntfy,
            "slack" => Format::Slack,
            _ if address.host.starts_with("ntfy.") => Format::Ntfy,
            _ if address.host == "hooks.slack.com" => Format::Slack,
            _ => Format::Json,
        }
    }
}

/// Where a notice is sent, in which form, and what.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub url: String,
    pub host: String,
    pub format: Format,
    pub body: Value,
}

/// Prepares the request for an address, or says what is wrong with that.
pub fn request(notice: &Notice, url: &str, format: &str) -> Result<HttpRequest, &'static str> {
    let address = Address::parse(url)?;
    let format = Format::of(format, &address);
    let (url, body) = match format {
        Format::Json => (url.to_owned(), whole(notice)),
        Format::Slack => (url.to_owned(), slack(notice)),
        Format::Ntfy => (address.ntfy_publish()?, ntfy(notice, address.topic()?)),
    };
    Ok(HttpRequest { url, host: address.host, format, body })
}

fn whole(notice: &Notice) -> Value {
    let reply = notice.reply.as_ref().map(|reply| json!({"url": reply.topic, "token": reply.token}));
    json!({
        "event": notice.event.name(),
        "timestamp": notice.at,
        "title": notice.title,
        "message": notice.message,
        "outcome": notice.outcome,
        "reason": notice.reason,
        "project": notice.project,
        "run_id": notice.run_id,
        "session_id": notice.session_id,
        "iteration": notice.iteration,
        "checks": notice.checks,
        "question": notice.question,
        "answer": reply,
    })
}

fn slack(notice: &Notice) -> Value {
    // Slack takes these three for its own marks, such as one that calls everyone in the channel.
    let plain = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({"text": format!("*{}*\n{}", plain(&notice.title).replace('*', ""), plain(&notice.message))})
}

fn ntfy(notice: &Notice, topic: &str) -> Value {
    let (priority, tag) = match (notice.event, notice.outcome) {
        (NotificationEvent::Question | NotificationEvent::Permission | NotificationEvent::UsageLimit, _) => {
            (4, "question")
        }
        (NotificationEvent::NoProgress | NotificationEvent::Outage | NotificationEvent::FullContext, _) => {
            (3, "hourglass")
        }
        (_, None) => (3, "bell"),
        (_, Some(Outcome::Complete)) => (3, "white_check_mark"),
        (_, Some(Outcome::Stopped | Outcome::Killed | Outcome::Interrupted)) => (2, "stop_sign"),
        _ => (4, "warning"),
    };
    let mut body = json!({
        "topic": topic, "title": notice.title, "message": notice.message, "priority": priority, "tags": [tag]
    });
    if let Some(reply) = &notice.reply {
        let answers: &[(&str, &str)] = match notice.outcome {
            Some(Outcome::Blocked) => &[
                ("Resolved", "It is resolved. Try again."),
                ("Work around it", "Find a way around it and continue."),
            ],
            _ => &[("Yes", "Yes."), ("No", "No."), ("You decide", "Decide yourself, and note why.")],
        };
        let button = |(label, answer): &(&str, &str)| {
            let text = format!("{} {answer}", reply.token);
            json!({"action": "http", "label": label, "url": reply.topic, "method": "POST", "body": text, "clear": true})
        };
        body["actions"] = answers.iter().map(button).collect();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::super::ReplyTo;
    use super::*;
    use crate::core::record::StoredLoop;
    use crate::core::time::Stamp;

    fn asked(outcome: Outcome) -> Notice {
        let run = StoredLoop {
            outcome: Some(outcome),
            reason: Some("A <!channel> & B?".into()),
            ..StoredLoop::default()
        };
        let reply = ReplyTo { topic: "https://ntfy.example/answers".into(), token: "k7".into() };
        Notice::question(&run, "/home/u/shop", Some(reply), Stamp(0))
    }

    #[test]
    fn the_format_follows_the_host_unless_it_is_set() {
        for (url, setting, format) in [
            ("https://ntfy.sh/t", "auto", Format::Ntfy),
            ("https://ntfy.example.org/t", "auto", Format::Ntfy),
            ("https://hooks.slack.com/services/a/b", "auto", Format::Slack),
            ("https://example.org/ntfy.sh", "auto", Format::Json),
            ("https://example.org/t", "ntfy", Format::Ntfy),
            ("https://ntfy.sh/t", "json", Format::Json),
        ] {
            assert_eq!(
                request(&asked(Outcome::Decide), url, setting).unwrap().format,
                format,
                "{url} {setting}"
            );
        }
        assert!(request(&asked(Outcome::Decide), "https://ntfy.sh/", "auto").is_err(), "no topic");
    }

    #[test]
    fn a_question_has_buttons_that_carry_its_token() {
        let sent = request(&asked(Outcome::Decide), "https://ntfy.sh/alerts", "auto").unwrap();
        assert_eq!((sent.url.as_str(), &sent.body["topic"]), ("https://ntfy.sh/", &json!("alerts")));
        let actions = sent.body["actions"].as_array().unwrap();
        assert_eq!(actions.len(), 3, "ntfy takes three");
        assert_eq!(actions[0]["url"], "https://ntfy.example/answers");
        assert!(actions.iter().all(|action| action["body"].as_str().unwrap().starts_with("k7 ")));
        let blocked = request(&asked(Outcome::Blocked), "https://ntfy.sh/alerts", "auto").unwrap();
        assert_eq!(blocked.body["actions"][0]["label"], "Resolved");
    }

    #[test]
    fn slack_calls_no_one_by_the_words_of_an_agent() {
        let sent = request(&asked(Outcome::Decide), "https://hooks.slack.com/services/x", "auto").unwrap();
        let text = sent.body["text"].as_str().unwrap();
        assert!(text.contains("A &lt;!channel&gt; &amp; B?") && !text.contains('<'), "{text}");
        assert_eq!(sent.body.as_object().unwrap().len(), 1);
    }

    #[test]
    fn a_webhook_gets_everything_by_name() {
        let body = request(&asked(Outcome::Decide), "https://example.org/hook", "auto").unwrap().body;
        assert_eq!((&body["event"], &body["outcome"]), (&json!("question"), &json!("decide")));
        assert_eq!(body["question"], "A <!channel> & B?");
        assert_eq!(body["answer"], json!({"url": "https://ntfy.example/answers", "token": "k7"}));
    }
}
