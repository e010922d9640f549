//! `planctl __judge`: asks a model about the work of a step, as the order on standard input says, and prints what came of it.
//!
//! A process makes one call that may be paid for. The node that gave the order stores the most that a call may use before each.

use std::cell::RefCell;
use std::io::{self, Read as _, Write as _};

use planctl_engine::Usage;
use planctl_harness::judge_schema;
use planctl_planner::{Charge, Prompt};
use planctl_server::judge::{JudgeOrder, JudgeReply};

use crate::failure::{Exit, Failure};
use crate::model::{Account, AskedAgain, Model};

/// The largest order.
const ORDER_BYTES_MAX: u64 = 4 << 20;

/// Carries the order out, and returns the exit code.
pub fn main() -> u8 {
    match read_request() {
        Ok(reply) => {
            let printed = io::stdout().write_all(reply.as_bytes()).and_then(|()| io::stdout().flush());
            u8::from(printed.is_err())
        }
        Err(why) => {
            // A reader that is gone misses it, and the exit code stays.
            writeln!(io::stderr(), "{why}").ok();
            1
        }
    }
}

fn read_request() -> Result<String, String> {
    let mut text = Vec::new();
    io::stdin().take(ORDER_BYTES_MAX).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let order: JudgeOrder =
        serde_json::from_slice(&text).map_err(|error| format!("the order can't be read: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {error}"))?;
    let JudgeOrder { name, model, price, key, system, text } = order;
    let reply = match Model::with_key(&name, &model, price, key) {
        Ok(model) => runtime.block_on(ask_model(&model, system, text)),
        Err(failure) => JudgeReply::Refused { why: failure.message },
    };
    serde_json::to_string(&reply).map_err(|error| error.to_string())
}

/// Asks once; a service that takes no calls for now is waited for.
async fn ask_model(model: &Model, system: String, text: String) -> JudgeReply {
    let prompt = Prompt { system, text, schema: judge_schema(), name: "judgement" };
    let (mut account, trouble) = (OneCall::default(), RefCell::new(String::new()));
    let say = |again: &AskedAgain| trouble.borrow_mut().clone_from(&again.trouble);
    match model.ask(&prompt, &say, &mut account).await {
        Ok(answer) => {
            let tokens = answer.tokens.unwrap_or_default();
            let usage = Usage {
                input_tokens: tokens.input,
                cached_input_tokens: tokens.cached,
                output_tokens: tokens.output,
                micro_usd: answer.micro_usd,
                model: Some(model.model().to_owned()),
                estimated: answer.micro_usd.is_some(),
                tokens_estimated: tokens.estimated,
            };
            JudgeReply::Answered { text: answer.text, usage }
        }
        Err(_) if account.has_refused => JudgeReply::Lost { why: trouble.into_inner(), may_pass: true },
        Err(failure) if account.is_sent => JudgeReply::Lost { why: failure.message, may_pass: false },
        Err(failure) => JudgeReply::Refused { why: failure.message },
    }
}

/// Lets one call be sent whose answer may be lost.
#[derive(Default)]
struct OneCall {
    is_sent: bool,
    has_refused: bool,
}

impl Account for OneCall {
    async fn enter(&mut self, _most: Charge) -> Result<(), Failure> {
        if self.is_sent {
            self.has_refused = true;
            return Err(Failure::new(Exit::Temporary, "its answer is lost"));
        }
        self.is_sent = true;
        Ok(())
    }

    async fn strike(&mut self) -> Result<(), Failure> {
        self.is_sent = false;
        Ok(())
    }

    fn strike_in_memory(&mut self) {
        self.is_sent = false;
    }
}
