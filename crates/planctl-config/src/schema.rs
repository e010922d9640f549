//! The JSON Schema of planctl.toml, for editors; it says what `read` says, as far as a schema can.

use planctl_engine::RedFirst;
use planctl_harness::{KnownAgent, PermissionMode};
use planctl_lang::{Code, Levels, Wish};
use serde_json::{Value, json};

use crate::channel::{ChannelTarget, MailTls, MessageEvent};
use crate::model::ModelApi;
use crate::role::Effects;
use crate::terminal::TerminalCall;
use crate::trace::TraceProtocol;
use crate::workspace::{Commits, WorkspaceMode};

const ROLE: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
const HOST: &str =
    r"^(((\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?|[0-9A-Fa-f:.]+)$";
const TIME: &str =
    r"^\s*(?=.*[1-9])([0-9]+\s*(s|sec|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days)\s*)+$";
/// The same, or no time at all.
const TIME_OR_NONE: &str =
    r"^\s*([0-9]+\s*(s|sec|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days)\s*)+$";

/// Returns the schema.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "planctl.toml",
        "description": "The configuration of planctl; every key is optional.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "isolation": {
                "description": "How much isolation contracts and workers need; below it nothing runs. require:TIER takes the best that the host offers up to 1b; 2 has to be named.",
                "enum": ["auto", "0", "1a", "1b", "2", "require:0", "require:1", "require:1a", "require:1b", "require:2"],
                "default": "auto",
            },
            "project": table("The project.", json!({
                "name": { "type": "string", "description": "The name of the project, for people." },
            })),
            "workspace": table("Where runs work.", json!({
                "mode": {
                    "description": "shared: in the workspace itself, one run after the other; worktree: each run in a git worktree of its own, on a branch of its own.",
                    "enum": WorkspaceMode::ALL.map(WorkspaceMode::as_str),
                    "default": WorkspaceMode::Shared.as_str(),
                },
                "git": {
                    "description": "commit: what a run in a worktree leaves is committed on its branch when it is done.",
                    "enum": Commits::ALL.map(Commits::as_str),
                    "default": Commits::None.as_str(),
                },
            })),
            "contracts": table("How contracts run.", json!({
                "timeout": time("How long one evaluation may take, where the plan does not say."),
                "env": variables("Variables added to the clean environment."),
                "path": {
                    "description": "Absolute directories that go before the fixed PATH.",
                    "type": "array",
                    "items": directory(),
                },
                "limits": table("The limits of one evaluation and all its processes.", json!({
                    "cpu": time("CPU time of all its processes together."),
                    "memory": size("Memory of all its processes together, without mapped files."),
                    "processes": count("Processes at a time; 4096 unless it is said."),
                    "file_size": size("The largest file that it may write."),
                    "open_files": count("Files that one process may have open."),
                })),
                "red_first": {
                    "description": "Whether they have to be red before the work, where the plan does not say.",
                    "enum": RedFirst::ALL.map(RedFirst::as_str),
                    "default": RedFirst::Off.as_str(),
                },
            })),
            "roles": {
                "description": "The agent that serves each role.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": role(),
            },
            "models": {
                "description": "The models that `plan draft --model NAME` may ask, by name.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": model(),
            },
            "prices": {
                "description": "The price of a model's tokens, by its name; needed where an agent reports no money.",
                "type": "object",
                "additionalProperties": price(),
            },
            "approval": {
                "description": "The policies that approve plans in your place, by name.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": policy(),
            },
            "asks": {
                "description": "The rules for asks, by name: how many of which people have to agree, and by when.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": ask_rule(),
            },
            "groups": {
                "description": "People by the name of their group, as `of` of a rule for asks names it: `group:leads`.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": { "type": "array", "items": { "type": "string" }, "examples": [["ann", "ben"]] },
            },
            "budget": table("What runs may use in a day, from midnight to midnight, all together.", json!({
                "per_day": {
                    "type": "string",
                    "examples": ["2M tokens, $20"],
                    "description": "The tokens and the money of all runs of the project.",
                },
                "host_per_day": {
                    "type": "string",
                    "examples": ["10M tokens, $100"],
                    "description": "The tokens and the money of all runs on this machine.",
                },
                "time_zone": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9_+/-]{1,64}$",
                    "examples": ["Europe/Berlin"],
                    "description": "The time zone whose midnight counts; without one, the machine's.",
                },
            })),
            "notify": {
                "description": "The channels on which people get messages, by name.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": channel(),
            },
            "servers": {
                "description": "The MCP servers whose tools plans may use, by name.",
                "type": "object",
                "propertyNames": { "pattern": ROLE },
                "additionalProperties": server(),
            },
            "mcp": table("How `planctl mcp` serves an agent.", json!({
                "asks_at_client": {
                    "type": "boolean",
                    "default": false,
                    "description": "Whether the agent's screen is yours, so that its questions are put to you there.",
                },
            })),
            "judges": table("Who may be asked about the work of a step, beside its contract.", json!({
                "by": {
                    "type": "array",
                    "items": { "type": "string", "pattern": ROLE },
                    "description": "The models and roles that may be asked; the first where a step names none.",
                },
                "alone": {
                    "type": "boolean",
                    "default": false,
                    "description": "Whether a judge may be a step's only check.",
                },
            })),
            "database": table("Which database to use; without one, a private Postgres.", json!({
                "url": { "type": "string", "pattern": "^postgres(ql)?://", "description": "The address of a Postgres." },
            })),
            "postgres": table("Where the private Postgres comes from, and how long it goes on.", json!({
                "bin_dir": directory(),
                "download": {
                    "type": "boolean",
                    "default": true,
                    "description": "Whether a missing Postgres may be fetched.",
                },
                "stop_after": {
                    "type": "string",
                    "pattern": TIME_OR_NONE,
                    "default": "1m",
                    "examples": ["0s", "1m", "1h"],
                    "description": "How long it goes on after the last command that used it; with \"0s\" it stops with each.",
                },
            })),
            "terminal": table("What a run that you watch does at your terminal.", json!({
                "call": {
                    "enum": TerminalCall::ALL.map(TerminalCall::as_str),
                    "default": TerminalCall::default().as_str(),
                    "description": "How you are called where the run needs you or is over; auto knows which terminals show notifications.",
                },
            })),
            "traces": table("Where traces of runs are sent, by OTLP. The variables of OpenTelemetry go before it.", json!({
                "endpoint": {
                    "type": "string",
                    "pattern": "^https?://",
                    "examples": ["http://localhost:4318"],
                    "description": "The address of a collector. Without one, none is sent.",
                },
                "protocol": {
                    "enum": TraceProtocol::ALL.map(TraceProtocol::as_str),
                    "default": TraceProtocol::default().as_str(),
                    "description": "The form of the requests.",
                },
                "service": { "type": "string", "default": "planctl", "description": "The name of the service." },
            })),
            "verify": table("How much each finding of `plan verify` weighs.", json!({
                "allow": codes("Say nothing of these.", Wish::Allow),
                "warn": codes("Say these as warnings.", Wish::Warn),
                "deny": codes("Say these as errors.", Wish::Deny),
            })),
            "library": table("What the library of plans does.", json!({
                "learn": {
                    "type": "boolean",
                    "default": true,
                    "description": "Whether an entry must be asked for by one trigger more where most of its runs failed.",
                },
            })),
        },
    })
}

fn table(description: &str, properties: Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn role() -> Value {
    table(
        "The settings of this role.",
        json!({
            "agent": {
                "description": "The worker: an agent by its name, with arguments of your own after a colon, or exec: and a command that reads the prompt on its input.",
                "type": "string",
                "pattern": agent_pattern(),
                "examples": ["claude", "codex:-m gpt-x", "exec:./work.sh"],
            },
            "permissions": {
                "description": "The permissions that an agent known by name has without a person: deny (it only reads), list (those of `allow`), ask (as list; a denied action becomes a question to you).",
                "enum": PermissionMode::ALL.map(PermissionMode::as_str),
                "default": PermissionMode::default().as_str(),
            },
            "allow": {
                "description": "The tools it may use; without a list, its usual ones.",
                "type": "array",
                "items": { "type": "string", "examples": ["Edit", "Write", "Bash(git *)", "*"] },
            },
            "effects": table(
                "The effects that the role's tools may have; denials go before permissions.",
                json!({
                    "allow": effects("Without a person."),
                    "deny": effects("Never without a person."),
                }),
            ),
            "plans": {
                "description": "The plans that the role may take, as globs over their paths or names; without a list, all.",
                "type": "array",
                "items": { "type": "string", "examples": ["plans/bugfix-*.md"] },
            },
            "types": {
                "description": "The types of nodes in graphs that the role serves, where they name no role of their own.",
                "type": "array",
                "items": { "type": "string", "examples": ["deploy"] },
            },
            "pace": table(
                "The responders when the role can't go on, the first to be asked first.",
                json!({
                    "alternate": responder(),
                    "contingent": responder(),
                    "emergency": responder(),
                }),
            ),
            "network": {
                "description": "The hosts that its agent reaches: all that the host does, none, or these at the ports 443 and 80, or at the one that is named. Less than the host needs isolation tier 1b.",
                "default": "host",
                "anyOf": [
                    { "enum": ["host", "none"] },
                    {
                        "type": "array",
                        "minItems": 1,
                        "items": { "type": "string", "pattern": HOST, "examples": ["api.example.com", "*.example.org", "example.net:8443"] },
                    },
                ],
            },
            "timeout": time("How long one attempt may take, where the plan does not say."),
            "idle_timeout": time("How long a worker may stay silent."),
            "env": {
                "description": "Variables the worker gets: set to values, or passed on by name.",
                "anyOf": [
                    variables("Set to these values."),
                    { "type": "array", "items": variable_name(), "description": "Passed on from planctl's own." },
                ],
            },
        }),
    )
}

fn policy() -> Value {
    json!({
        "description": "A policy; it approves a plan that stays within every bound, and leaves each other plan to a person.",
        "type": "object",
        "additionalProperties": false,
        "required": ["plans", "budget"],
        "properties": {
            "plans": {
                "description": "The plans that it is for, as globs over their paths.",
                "type": "array",
                "minItems": 1,
                "items": { "type": "string", "examples": ["plans/chores/*.md"] },
            },
            "budget": {
                "description": "The highest budget of a plan, as plans write it; a plan has to limit every part that this one limits.",
                "type": "string",
                "examples": ["200k tokens, $1.50, 20 minutes"],
            },
            "steps": count("The most steps of a plan."),
            "roles": {
                "description": "The roles that may work on it; without a list, all.",
                "type": "array",
                "items": { "type": "string", "pattern": ROLE },
            },
            "contracts": {
                "description": "The commands that may run as contracts, calls and decisions, word for word; without a list, all.",
                "type": "array",
                "items": { "type": "string", "examples": ["cargo test"] },
            },
            "repairs": count("The most repairs of one run that it approves: none where it is left out."),
        },
    })
}

fn ask_rule() -> Value {
    let names = |about: &str| json!({ "description": about, "type": "array", "items": { "type": "string" } });
    json!({
        "description": "A rule for some asks. Every rule that is for an ask holds.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "kinds": {
                "description": "The kinds of asks that it is for; without a list, all.",
                "type": "array",
                "items": { "enum": ["plan", "escalation", "budget", "question", "choice", "insertion", "effect", "prompt", "synthesis", "day_budget"] },
            },
            "plans": names("The plans that it is for, as globs over their paths; without a list, all."),
            "owners": names("The owners of plans that it is for; without a list, all."),
            "approvals": count("How many people have to give the same answer before it counts: 1 where it is left out."),
            "of": names("The people whose votes count; without a list, everybody who may decide."),
            "self_approval": {
                "description": "Whether the plan's owner and the person who handed it in may vote: true where it is left out.",
                "type": "boolean",
            },
            "deadline": {
                "description": "How long an ask waits before the rule answers it.",
                "type": "string",
                "examples": ["24h"],
            },
            "on_deadline": {
                "description": "The answer that is given after that time; \"wait\" goes on waiting.",
                "enum": ["wait", "reject", "abort"],
            },
        },
    })
}

fn server() -> Value {
    let variable = json!({
        "type": "string",
        "pattern": "^[A-Z_][A-Z0-9_]*$",
        "description": "The variable that holds its token; never the token.",
    });
    let mut server = table(
        "A server; it is started by `command`, or reached at `url`.",
        json!({
            "command": {
                "description": "The program and its arguments; it speaks over its standard streams.",
                "type": "array",
                "minItems": 1,
                "items": { "type": "string" },
                "examples": [["npx", "@modelcontextprotocol/server-everything"]],
            },
            "env": { "type": "array", "items": variable_name(), "description": "Passed on from planctl's own." },
            "url": { "type": "string", "pattern": "^https?://[^@?#\\s]+$", "description": "The address (streamable HTTP)." },
            "token_env": variable,
            "effects": effects("The effects of its tools; a person is asked about tools without any."),
            "tools": {
                "description": "The effects of single tools, by their names.",
                "type": "object",
                "additionalProperties": effects("The effects of this tool."),
            },
        }),
    );
    server["oneOf"] = json!([
        { "required": ["command"], "not": { "required": ["token_env"] } },
        { "required": ["url"], "not": { "required": ["env"] } },
    ]);
    server
}

fn agent_pattern() -> String {
    let names: Vec<&str> = KnownAgent::all().map(KnownAgent::name).collect();
    format!(r"^(exec:[\s\S]*\S|({})\s*(:[\s\S]*)?$)", names.join("|"))
}

fn effects(description: &str) -> Value {
    let item = json!({ "type": "string", "pattern": "^[a-z_-]+$", "examples": Effects::KNOWN });
    json!({ "description": description, "type": "array", "items": item })
}

fn responder() -> Value {
    json!({ "type": "string", "pattern": ROLE, "description": "A role, or \"human\"." })
}

fn model() -> Value {
    let mut model = table(
        "A model.",
        json!({
            "api": {
                "enum": ModelApi::ALL.map(ModelApi::as_str),
                "description": "The form of its calls: messages (/v1/messages), chat (/v1/chat/completions) or embeddings (/v1/embeddings).",
            },
            "url": { "type": "string", "pattern": "^https?://[^@?#\\s]+$", "description": "The address of the service, or of the endpoint." },
            "model": { "type": "string", "description": "The name by which the service knows it." },
            "key_env": {
                "type": "string",
                "pattern": "^[A-Z_][A-Z0-9_]*$",
                "description": "The variable that holds its key; never the key.",
            },
            "max_tokens": count("The most tokens of one answer; 8192 unless it is said."),
            "timeout": time("How long one answer may take; 3 minutes unless it is said."),
            "ask": {
                "type": "boolean",
                "description": "Whether a person approves each prompt before it is sent; no unless it is said.",
            },
        }),
    );
    model["required"] = json!(["api", "url", "model"]);
    model
}

fn channel() -> Value {
    let variable = |description: &str| json!({ "type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$", "description": description });
    let mut channel = table(
        "A channel.",
        json!({
            "to": { "enum": ChannelTarget::WORDS, "description": "Where it leads." },
            "on": {
                "description": "The events that it carries; without a list, all of them.",
                "type": "array",
                "items": { "enum": MessageEvent::ALL.map(MessageEvent::as_str) },
            },
            "timeout": time("How long one try may take; 10 seconds unless it is said."),
            "page": { "type": "string", "pattern": "^https?://", "description": "The address of the daemon's page, for a link to what a message is about." },
            "quiet": {
                "type": "string",
                "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9] *- *([01][0-9]|2[0-3]):[0-5][0-9]$",
                "examples": ["22:00-08:00"],
                "description": "Hours of each day in which messages are held; afterwards they come as one.",
            },
            "quiet_zone": { "type": "string", "pattern": "^[A-Za-z0-9_+/-]{1,64}$", "examples": ["Europe/Berlin"], "description": "The time zone of these hours." },
            "urgent": {
                "description": "The events that are not held.",
                "type": "array",
                "items": { "enum": MessageEvent::ALL.map(MessageEvent::as_str) },
            },
            "url": { "type": "string", "pattern": "^https?://[^@/?#\\s]+[^\\s]*$", "description": "Where a webhook is sent." },
            "url_env": variable("The variable that holds the address, where that is a secret."),
            "secret_env": variable("The variable that holds the secret of a webhook's signature."),
            "allow_private": {
                "type": "boolean",
                "default": false,
                "description": "Whether it may be sent to this machine and to private networks.",
            },
            "server": { "type": "string", "description": "The host of the server that takes mail." },
            "port": { "type": "integer", "minimum": 1, "maximum": 65535, "description": "Its port; 587, or 465 with tls, unless it is said." },
            "tls": {
                "enum": MailTls::ALL.map(MailTls::as_str),
                "default": MailTls::default().as_str(),
                "description": "How the connection is encrypted; none needs allow_private.",
            },
            "from": { "type": "string", "description": "The sender of mail." },
            "recipients": { "type": "array", "minItems": 1, "items": { "type": "string" }, "description": "Those who get the mail." },
            "user": { "type": "string", "description": "The name to log in with." },
            "password_env": variable("The variable that holds the password."),
            "command": { "type": "string", "description": "A shell command that reads the message on its input." },
            "env": { "type": "array", "items": variable_name(), "description": "Variables that the command gets of planctl's own." },
        }),
    );
    channel["required"] = json!(["to"]);
    channel
}

fn price() -> Value {
    let dollars = |description: &str| json!({ "type": "number", "minimum": 0, "maximum": 100_000, "description": description });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["input", "output"],
        "properties": {
            "input": dollars("US dollars per million input tokens."),
            "cached": dollars("US dollars per million input tokens from a cache; without it, as input."),
            "output": dollars("US dollars per million output tokens."),
        },
    })
}

fn time(description: &str) -> Value {
    json!({ "type": "string", "pattern": TIME, "examples": ["90s", "10m", "1h30m"], "description": description })
}

fn size(description: &str) -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+ ?[KMG]iB$", "examples": ["512MiB", "2GiB"], "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

fn variables(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "propertyNames": variable_name(),
        "additionalProperties": { "type": "string", "pattern": r"^[^\u0000]*$" },
    })
}

fn variable_name() -> Value {
    json!({ "type": "string", "pattern": "^(?!PLANCTL_)[A-Za-z_][A-Za-z0-9_]*$" })
}

fn directory() -> Value {
    json!({ "type": "string", "pattern": r"^/[^:\u0000]*$", "description": "An absolute directory." })
}

fn codes(description: &str, wish: Wish) -> Value {
    let may_be = |code: &Code| Levels::default().add(wish, code.as_str()).is_ok();
    let codes = Code::ALL.iter().filter(|code| may_be(code)).map(|code| code.as_str());
    let words: Vec<&str> = codes.chain(["warnings"]).collect();
    json!({ "description": description, "type": "array", "items": { "enum": words } })
}
