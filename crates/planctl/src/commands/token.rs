//! `planctl token …`: the access tokens of the daemon and their scopes.

use clap::ValueEnum;
use planctl_api::wire::work::{TokenCall, TokenView};

use super::Context;
use crate::args::{TokenCommand, TokenScope};
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::show;

/// Does what was typed.
pub async fn run(context: &Context, command: TokenCommand) -> Answer {
    match command {
        TokenCommand::Create { scope, name, roles, expires } => {
            let seconds = expires.map(|expires| expires.as_secs());
            create(context, TokenCall { name, scope: scope_word(scope), roles, seconds }).await
        }
        TokenCommand::Ls => ls(context).await,
        TokenCommand::Revoke { id } => revoke(context, &id).await,
    }
}

fn scope_word(scope: TokenScope) -> String {
    scope.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

async fn create(context: &Context, call: TokenCall) -> Answer {
    let is_json = context.is_json()?;
    let made = Client::open_quietly(context).await?.make_token(&call).await?;
    // A file that others can read is refused where its token is needed.
    show::keep_output_private();
    if is_json {
        show::print_json(&made)?;
        return Ok(Exit::Yes);
    }
    // The secret alone, so that it can go into a file as it is.
    show::print(&format!("{}\n", made.secret))?;
    context.say(&format!("token {} · {} · shown this once", made.token.id, made.token.scope));
    context.say(&format!("revoke it: planctl token revoke {}", made.token.id));
    Ok(Exit::Yes)
}

async fn ls(context: &Context) -> Answer {
    let is_json = context.is_json()?;
    let list = Client::open_quietly(context).await?.tokens().await?;
    if is_json {
        show::print_json(&list)?;
    } else if list.tokens.is_empty() {
        show::print("no tokens; planctl token create worker --name NAME\n")?;
    } else {
        let header = ["ID", "NAME", "SCOPE", "ROLES", "HOLDS", "LAST USED"];
        show::print(&show::table(&header, list.tokens.iter().map(row).collect()))?;
    }
    Ok(Exit::Yes)
}

fn row(token: &TokenView) -> Vec<String> {
    let dash = || "–".to_owned();
    let holds = match (&token.revoked_at, &token.expires_at) {
        (Some(at), _) => format!("no, revoked {at}"),
        (None, Some(at)) if token.live => format!("until {at}"),
        (None, Some(at)) => format!("no, expired {at}"),
        (None, None) => "yes".to_owned(),
    };
    vec![
        token.id.clone(),
        token.name.clone(),
        token.scope.clone(),
        if token.roles.is_empty() { dash() } else { token.roles.join(", ") },
        holds,
        token.last_used_at.clone().unwrap_or_else(dash),
    ]
}

async fn revoke(context: &Context, id: &str) -> Answer {
    let is_json = context.is_json()?;
    let token = Client::open_quietly(context).await?.revoke_token(id).await?;
    if is_json {
        show::print_json(&token)?;
    } else {
        context.say(&format!("revoked: {} ({})", show::safe(&token.name), token.id));
    }
    Ok(Exit::Yes)
}
