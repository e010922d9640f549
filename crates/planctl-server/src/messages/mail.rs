//! Sends a message by mail, to a server that submits it.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use planctl_api::wire::messages::MessageView;
use planctl_config::{MailConfig, MailTls};
use url::Host;

use super::{SendError, secret, target, text};

/// The most characters of a subject.
const SUBJECT_CHARACTERS_MAX: usize = 150;

/// Hands the message to the server; returns what it answered, in a few words.
///
/// # Errors
///
/// Where the server may not be called, and where it does not take the message.
pub(super) async fn send(
    mail: &MailConfig,
    allow_private: bool,
    timeout: Duration,
    id: &str,
    message: &MessageView,
) -> Result<String, SendError> {
    let host = usable_host(mail, allow_private)?;
    let addresses = target::resolved(host, mail.port(), allow_private).await?;
    let address = addresses.first().ok_or_else(|| SendError::retryable("the host's name has no address"))?;
    // The process has one implementation of cryptography; a second caller chooses the same.
    rustls::crypto::ring::default_provider().install_default().ok();
    // The connection goes to the address that was looked at, and its certificate has to be the host's.
    let parameters = || {
        TlsParameters::new_rustls(mail.server.clone())
            .map_err(|error| SendError::retryable(format!("TLS can't be used: {error}")))
    };
    let tls = match mail.tls {
        MailTls::Wrapped => Tls::Wrapper(parameters()?),
        MailTls::StartTls => Tls::Required(parameters()?),
        MailTls::None => Tls::None,
    };
    let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.ip().to_string())
        .port(address.port())
        .tls(tls)
        .timeout(Some(timeout));
    if let Some(user) = &mail.user {
        let password = mail.password_env.as_deref().map(secret).transpose()?.unwrap_or_default();
        transport = transport.credentials(Credentials::new(user.clone(), password));
    }
    let letter = build_mail(mail, id, message)?;
    match tokio::time::timeout(timeout, transport.build().send(letter)).await {
        Err(_) => Err(SendError::retryable("no answer in time")),
        Ok(Ok(answer)) => Ok(format!("SMTP {}", answer.code())),
        Ok(Err(error)) => Err(refusal(&error)),
    }
}

/// Reads the server of a channel, which is refused where no mail can be sent by it whatever names mean.
pub(super) fn usable_host(mail: &MailConfig, allow_private: bool) -> Result<Host<String>, SendError> {
    let unusable = |what: &str| SendError::permanent(format!("the channel can't be used: {what}"));
    if mail.tls == MailTls::None && !allow_private {
        return Err(unusable("others could read it: tls = \"none\" needs allow_private = true"));
    }
    let host = Host::parse(&mail.server).map_err(|_| unusable("`server` is not a host"))?;
    target::refuse_private_number(Some(&host), allow_private)?;
    Ok(host)
}

/// Says in a few words why the server did not take a message: what it says itself may be anything.
fn refusal(error: &lettre::transport::smtp::Error) -> SendError {
    let what = match error.status() {
        Some(code) => format!("SMTP {code}"),
        None if error.is_timeout() => "no answer in time".to_owned(),
        None if error.is_tls() => "TLS failed".to_owned(),
        None => "no connection, or it broke".to_owned(),
    };
    SendError { is_final: error.is_permanent(), ..SendError::retryable(what) }
}

fn build_mail(mail: &MailConfig, id: &str, message: &MessageView) -> Result<Message, SendError> {
    let mailbox = |address: &str| {
        address
            .parse::<Mailbox>()
            .map_err(|_| SendError::permanent(format!("{address:?} is not a mail address")))
    };
    let subject: String =
        format!("[planctl] {}", message.sentence).chars().take(SUBJECT_CHARACTERS_MAX).collect();
    let mut builder = Message::builder()
        .from(mailbox(&mail.from)?)
        .subject(subject)
        .message_id(Some(format!("<{id}@planctl>")))
        .header(ContentType::TEXT_PLAIN);
    for recipient in &mail.recipients {
        builder = builder.to(mailbox(recipient)?);
    }
    builder
        .body(text::plain(message))
        .map_err(|error| SendError::permanent(format!("the mail could not be written: {error}")))
}
