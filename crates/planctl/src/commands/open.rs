//! `planctl open`: the page in a browser, signed in as the person who types it.

use planctl_api::wire::PageLink;
use planctl_api::wire::calls::Nothing;
use planctl_harness::Browser;

use super::Context;
use crate::client::Client;
use crate::failure::{Answer, Exit};
use crate::show;

/// Opens the page; where no browser can be started, or only the link is wanted, prints the link.
pub async fn run(context: &Context, only_print: bool) -> Answer {
    let is_json = context.is_json()?;
    let link: PageLink = Client::open_daemon(context).await?.post("/v1/page/link", &[], &Nothing {}).await?;
    if is_json {
        show::print_json(&link)?;
        return Ok(Exit::Yes);
    }
    let browser = Browser::from_environment(|name| std::env::var_os(name)).filter(|_| !only_print);
    match browser.map(|browser| browser.open(&link.url)) {
        Some(Ok(())) => context.say("the page opens in your browser, signed in as you"),
        Some(Err(error)) => {
            context.say(&format!("your browser could not be started: {error}; open this link yourself"));
            print(context, &link)?;
        }
        None => print(context, &link)?,
    }
    Ok(Exit::Yes)
}

fn print(context: &Context, link: &PageLink) -> Result<(), crate::failure::Failure> {
    show::print(&format!("{}\n", link.url))?;
    context.say(&format!("it signs you in once, within {}", show::seconds(link.seconds as f64)));
    Ok(())
}
