//! `planctl __tool`: reads an order, carries it out, prints the result and ends with the exit code of what happened.

use std::io::{self, Read as _, Write};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use planctl_lang::tools::{Tool, coerced, filled, items, misfits, printed};
use serde_json::{Map, Value};

use crate::answer::{read, value_of};
use crate::connection::Connection;
use crate::fault::{Fault, FaultKind};
use crate::request::{Calls, Order, Request};

/// The largest order.
const ORDER_BYTES_MAX: u64 = 64 << 20;
/// The most items of one loop.
const ITEMS_MAX: usize = 1_000;
/// The largest result of a step.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// The longest wait of a rate limit that is waited for within the call.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often a rate limit is waited for within one call.
const WAITS_MAX: u8 = 2;

/// Carries out the order on standard input, and returns the exit code.
pub fn main() -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return report_fault(&Fault::new(FaultKind::Network, format!("could not start: {error}")));
        }
    };
    match read_order().and_then(|request| runtime.block_on(run_order(request))) {
        Ok(result) => match io::stdout().write_all(result.as_bytes()).and_then(|()| io::stdout().flush()) {
            Ok(()) => 0,
            Err(error) => report_fault(&Fault::new(FaultKind::Network, format!("could not print: {error}"))),
        },
        Err(fault) => report_fault(&fault),
    }
}

fn report_fault(fault: &Fault) -> u8 {
    say(&fault.to_string());
    fault.kind.exit_code()
}

/// Says something beside the result. A reader that is gone misses it, and the exit code stays.
fn say(line: &str) {
    writeln!(io::stderr(), "{line}").ok();
}

fn read_order() -> Result<Request, Fault> {
    let mut text = Vec::new();
    let unread =
        |error: String| Fault::new(FaultKind::Arguments, format!("the order can't be read: {error}"));
    io::stdin().take(ORDER_BYTES_MAX).read_to_end(&mut text).map_err(|error| unread(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unread(error.to_string()))
}

async fn run_order(request: Request) -> Result<String, Fault> {
    let calls = match request.order {
        Order::List => {
            let connection = Connection::open(&request.server).await?;
            let listed = connection.list().await;
            connection.close().await;
            return serde_json::to_string(&listed?)
                .map_err(|error| Fault::new(FaultKind::Protocol, error.to_string()));
        }
        Order::Call(calls) => *calls,
    };
    // With a tool that is known, what is wrong with the arguments is found before the server is started.
    let filled = filled_calls(&calls)?;
    if let Some((_, tool)) = &calls.known {
        fitting(filled.clone(), tool)?;
    }
    let connection = with_retries(async || Connection::open(&request.server).await).await?;
    let result = call_each(&connection, &calls, filled).await;
    connection.close().await;
    let result = printed(&result?);
    refuse_too_long(result.len())?;
    Ok(result)
}

/// Refuses more than a step's output may have; a loop ends there and does not fetch the rest.
fn refuse_too_long(bytes: usize) -> Result<(), Fault> {
    if bytes <= RESULT_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("the result has {bytes} bytes or more, and a step's output at most {RESULT_BYTES_MAX}");
    Err(Fault::new(FaultKind::Protocol, message))
}

/// Returns the arguments of each call, with the values of earlier steps in their places.
fn filled_calls(calls: &Calls) -> Result<Vec<Value>, Fault> {
    let wrong = |error: planctl_lang::tools::Unfilled| Fault::new(FaultKind::Arguments, error.to_string());
    let Some(list) = &calls.for_each else {
        return Ok(vec![filled(&calls.arguments, &calls.outputs, None).map_err(wrong)?]);
    };
    let items = items(list, &calls.outputs).map_err(wrong)?;
    if items.len() > ITEMS_MAX {
        let message =
            format!("the list of `for_each` has {} items, and {ITEMS_MAX} are allowed", items.len());
        return Err(Fault::new(FaultKind::Arguments, message));
    }
    items.iter().map(|item| filled(&calls.arguments, &calls.outputs, Some(item)).map_err(wrong)).collect()
}

/// Makes arguments fit the tool's schema.
fn fitting(filled: Vec<Value>, tool: &Tool) -> Result<Vec<Map<String, Value>>, Fault> {
    filled.into_iter().map(|arguments| fitting_one(arguments, tool)).collect()
}

fn fitting_one(arguments: Value, tool: &Tool) -> Result<Map<String, Value>, Fault> {
    let arguments = coerced(arguments, &tool.input);
    let wrong: Vec<String> = misfits(&arguments, &tool.input)
        .into_iter()
        .map(|misfit| match misfit.at.is_empty() {
            true => misfit.message,
            false => format!("{}: {}", misfit.at.join("."), misfit.message),
        })
        .collect();
    if !wrong.is_empty() {
        return Err(Fault::new(FaultKind::Arguments, wrong.join("; ")));
    }
    let Value::Object(fields) = arguments else {
        return Err(Fault::new(FaultKind::Arguments, "the arguments are not a JSON object"));
    };
    Ok(fields)
}

pub(crate) async fn call_each(
    connection: &Connection,
    calls: &Calls,
    filled: Vec<Value>,
) -> Result<Value, Fault> {
    let tool = current(connection, calls).await?;
    let each = fitting(filled, &tool)?;
    let is_loop = calls.for_each.is_some();
    let count = each.len();
    let uses = each.into_iter().enumerate().map(move |(at, arguments)| async move {
        say(&format!("{} {}", calls.tool, Value::Object(arguments.clone())));
        let used = async || connection.call(&calls.tool, arguments.clone()).await.and_then(value_of);
        with_retries(used).await.map_err(|fault| match is_loop {
            true => Fault { message: format!("item {} of {count}: {}", at + 1, fault.message), ..fault },
            false => fault,
        })
    });
    let mut uses = stream::iter(uses).buffered(calls.at_once.max(1));
    let (mut results, mut bytes) = (Vec::with_capacity(count), 0);
    while let Some(result) = uses.next().await {
        let result = result?;
        bytes += printed(&result).len();
        refuse_too_long(bytes)?;
        results.push(result);
    }
    match (is_loop, results.pop()) {
        (false, Some(only)) => Ok(only),
        (_, last) => Ok(Value::Array(results.into_iter().chain(last).map(read).collect())),
    }
}

/// Returns the tool as the server has it. A server of the version that was verified is not asked; of one with another version
/// the tool must be the one that was verified, since an approval was of that.
async fn current(connection: &Connection, calls: &Calls) -> Result<Tool, Fault> {
    let (_, version) = connection.server();
    if let Some((known, tool)) = &calls.known
        && *known == version
    {
        return Ok(tool.clone());
    }
    let list = connection.list().await?;
    let Some(tool) = list.tool(&calls.tool) else {
        return Err(Fault::new(FaultKind::Changed, format!("the server has no tool {:?}", calls.tool)));
    };
    match &calls.known {
        Some((known, before)) if before.input != tool.input => {
            let message = format!(
                "the arguments of {} are others in version {version} than in {known}, which was verified",
                calls.tool
            );
            Err(Fault::new(FaultKind::Changed, message))
        }
        Some(_) | None => Ok(tool.clone()),
    }
}

/// Does something, and waits for a short rate limit: what was refused had no effect.
async fn with_retries<T>(mut attempt: impl AsyncFnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    let mut waits = 0;
    loop {
        match attempt().await {
            Err(Fault { kind: FaultKind::RateLimit, wait: Some(wait), message })
                if wait <= WAIT_MAX && waits < WAITS_MAX =>
            {
                say(&format!("rate limit: {message}; waiting {} s", wait.as_secs()));
                tokio::time::sleep(wait).await;
                waits += 1;
            }
            other => return other,
        }
    }
}
