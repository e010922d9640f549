//! `planctl __judge`: asks a model about the work of a step, as the order on standard input says, and prints what came of it.

use std::io::{self, Read as _, Write as _};

use planctl_engine::{Budget, Usage};
use planctl_harness::{JudgeDialogue, JudgePrompt, JudgeSaid, judge_schema};
use planctl_planner::{Charge, Prompt, Tokens};
use planctl_server::judge::JudgeOrder;

use crate::failure::Failure;
use crate::model::{Account, Model};

/// The largest order.
const ORDER_BYTES_MAX: u64 = 4 << 20;

/// Carries the order out, and returns the exit code.
pub fn main() -> u8 {
    match read_request() {
        Ok(hearing) => {
            let printed = io::stdout().write_all(hearing.as_bytes()).and_then(|()| io::stdout().flush());
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
    let JudgeOrder { name, model, price, key, prompt, left } = order;
    let model = Model::with_key(&name, &model, price, key).map_err(|failure| failure.message)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {error}"))?;
    let mut dialogue = JudgeDialogue::new(&prompt);
    let hearing = loop {
        let said = match suffices(&model, &prompt, dialogue.usage(), left) {
            true => runtime.block_on(ask_model(&model, dialogue.system(), dialogue.text())),
            false => Err("what is left of the budget does not suffice for one more answer".to_owned()),
        };
        if let Some(hearing) = dialogue.handle_answer(said) {
            break hearing;
        }
    };
    serde_json::to_string(&hearing).map_err(|error| error.to_string())
}

/// Says whether what is left of the budget suffices for one more answer, after what the answers before used.
fn suffices(model: &Model, prompt: &JudgePrompt, used: Option<&Usage>, left: Budget) -> bool {
    let next = Tokens { input: prompt.tokens(), cached: 0, output: model.tokens_max() };
    let tokens = used.map_or(0, Usage::tokens).saturating_add(next.input).saturating_add(next.output);
    let micro_usd = used.and_then(|used| used.micro_usd).unwrap_or(0);
    let micro_usd = micro_usd.saturating_add(model.cost(next).unwrap_or(0));
    left.tokens.is_none_or(|left| tokens <= left) && left.micro_usd.is_none_or(|left| micro_usd <= left)
}

/// Asks once; trouble of the service that passes is waited for.
async fn ask_model(model: &Model, system: &str, text: &str) -> Result<JudgeSaid, String> {
    let prompt = Prompt {
        system: system.to_owned(),
        text: text.to_owned(),
        schema: judge_schema(),
        name: "judgement",
    };
    let answer = model.ask(&prompt, &|_| (), &mut ByRun).await.map_err(|failure| failure.message)?;
    let usage = answer.tokens.map(|tokens| Usage {
        input_tokens: tokens.input,
        cached_input_tokens: tokens.cached,
        output_tokens: tokens.output,
        micro_usd: answer.micro_usd,
        ..Usage::default()
    });
    Ok(JudgeSaid { text: answer.text, usage })
}

/// The run counts what its judges used, by their evidence.
struct ByRun;

impl Account for ByRun {
    async fn enter(&mut self, _most: Charge) -> Result<(), Failure> {
        Ok(())
    }

    async fn strike(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn answered(&mut self) {}
}
