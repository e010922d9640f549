//! The JSON Schemas of everything that programs read, and of planctl.toml; made from the types that are written.

use planctl_lang::{ExplainedCodes, Report};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::Value;

use crate::wire::calls::{AcceptedView, ClaimedView, HeartbeatView};
use crate::wire::draft::DraftView;
use crate::wire::goal::{GoalGraphView, GoalResolveView, GoalStatsView, GoalVerifyView, GoalView};
use crate::wire::messages::{ChannelList, ChannelTests, DeliveryList, DeliveryView, MessageView};
use crate::wire::tools::{ServersView, ToolView};
use crate::wire::work::{TokenList, TokenMade, TokenView, WorkerList, WorkerView};
use crate::wire::{
    AskList, AskPage, AuditView, CheckpointView, CleanView, ConfigPaths, ConfigView, ContextView, DaemonView,
    DatabaseView, Decided, DoctorView, EventLine, FormatView, GuardList, GuideView, LibraryEntryView,
    LibraryList, LibraryMatch, LibraryStats, LogView, OutputLine, PageLink, ParallelView, PlanDiffView,
    PlanFileList, PlanView, PromptList, RoleList, RunList, RunView, SaluteView, SchemaList, TopicList,
    TopicView, TraversalView, VersionView, WhyView, WorkerLine, WorkerTestView,
};

/// The name of each schema, and what it describes.
pub const ALL: &[(&str, &str)] = &[
    (
        "plan-verify",
        "plan verify --json: the report of one file, or a list of reports; a line of --format jsonl",
    ),
    ("plan-verify-explain", "plan explain --json"),
    ("graph-check", "graph check --json: the report of one file, or a list of reports"),
    ("graph-render", "graph render --format json: nodes and edges, each with what its source says of it"),
    ("plan-show", "plan show --json"),
    ("plan-fmt", "plan fmt --json"),
    ("plan-diff", "plan diff --json"),
    ("plan-draft", "plan draft --json"),
    ("goal", "goal decompose --json"),
    ("goal-graph", "goal graph --json"),
    ("goal-resolve", "goal resolve --json"),
    ("goal-verify", "goal verify --json"),
    ("goal-stats", "goal stats --json"),
    ("tools", "tool ls --json and tool refresh --json"),
    ("tool", "tool show --json"),
    ("plan-status", "status --json: one run where one is named, else a list of runs"),
    ("plan-salute", "status RUN --salute --json"),
    ("plan-traversal", "status RUN --traversal --json"),
    ("checkpoint", "checkpoint.json of export, and what the daemon answers of a run's checkpoint"),
    ("graph-parallel", "graph parallel --json"),
    ("plan-ls", "plan ls --json"),
    ("library", "library ls --json"),
    ("library-entry", "library show --json"),
    ("library-match", "library match --json"),
    ("library-stats", "library stats --json"),
    ("run-ls", "run ls --json"),
    ("plan-logs", "logs --json"),
    ("plan-output", "a line of logs --follow --json"),
    ("plan-prompts", "logs --prompt --json"),
    ("event", "a line of events --json, plan run --json, resume --json and watch --json"),
    ("why", "why --json"),
    ("plan-context", "context --json"),
    ("audit", "audit --json"),
    ("approvals", "approvals --json"),
    ("approvals-show", "approvals show --json"),
    ("decision", "what every command that decides answers with --json"),
    ("guide-status", "guide status --json"),
    ("guards", "guard ls --json"),
    ("clean", "clean --json"),
    ("notify-channels", "notify ls --json"),
    ("notify-test", "notify test --json"),
    ("notify-deliveries", "notify deliveries --json"),
    ("notify-delivery", "notify replay --json"),
    ("message", "a message to people: the data of a webhook, and the input of a command"),
    ("topics", "topic ls --json"),
    ("topic", "topic show --json, and topic post --json with the new note alone"),
    ("doctor", "doctor --json"),
    ("db-status", "db status --json"),
    ("roles", "roles ls --json"),
    ("worker-test", "worker test --json"),
    ("worker-run", "a line of worker run --json"),
    ("workers", "worker ls --json"),
    ("worker", "worker pause --json and worker resume --json"),
    ("work-claim", "item claim --json and item show --json"),
    ("work-heartbeat", "item heartbeat --json"),
    ("work-report", "what item complete, fail, ask and release answer with --json"),
    ("config-show", "config show --json"),
    ("config-path", "config path --json"),
    ("daemon-status", "daemon status --json"),
    ("page-link", "open --json"),
    ("token-made", "token create --json"),
    ("tokens", "token ls --json"),
    ("token", "token revoke --json"),
    ("version", "version --json"),
    ("schema", "schema --json"),
    (planctl_config::FILE_NAME, "the configuration file"),
];

/// Returns the schema of this name.
pub fn schema(name: &str) -> Option<Value> {
    let schema = match name {
        "plan-verify" | "graph-check" => schema_of_either::<Report, Vec<Report>>(),
        "graph-render" => graph(),
        "plan-verify-explain" => of::<ExplainedCodes>(),
        "plan-show" => of::<PlanView>(),
        "plan-fmt" => of::<FormatView>(),
        "plan-diff" => of::<PlanDiffView>(),
        "plan-draft" => of::<DraftView>(),
        "goal" => of::<GoalView>(),
        "goal-graph" => of::<GoalGraphView>(),
        "goal-resolve" => of::<GoalResolveView>(),
        "goal-verify" => of::<GoalVerifyView>(),
        "goal-stats" => of::<GoalStatsView>(),
        "tools" => of::<ServersView>(),
        "tool" => of::<ToolView>(),
        "plan-status" => schema_of_either::<RunView, RunList>(),
        "plan-salute" => of::<SaluteView>(),
        "plan-traversal" => of::<TraversalView>(),
        "checkpoint" => of::<CheckpointView>(),
        "graph-parallel" => of::<ParallelView>(),
        "plan-ls" => of::<PlanFileList>(),
        "library" => of::<LibraryList>(),
        "library-entry" => of::<LibraryEntryView>(),
        "library-match" => of::<LibraryMatch>(),
        "library-stats" => of::<LibraryStats>(),
        "run-ls" => of::<RunList>(),
        "plan-logs" => of::<LogView>(),
        "plan-output" => of::<OutputLine>(),
        "plan-prompts" => of::<PromptList>(),
        "event" => of::<EventLine>(),
        "why" => of::<WhyView>(),
        "plan-context" => of::<ContextView>(),
        "audit" => of::<AuditView>(),
        "approvals" => of::<AskList>(),
        "approvals-show" => of::<AskPage>(),
        "decision" => of::<Decided>(),
        "guide-status" => of::<GuideView>(),
        "guards" => of::<GuardList>(),
        "clean" => of::<CleanView>(),
        "notify-channels" => of::<ChannelList>(),
        "notify-test" => of::<ChannelTests>(),
        "notify-deliveries" => of::<DeliveryList>(),
        "notify-delivery" => of::<DeliveryView>(),
        "message" => of::<MessageView>(),
        "topics" => of::<TopicList>(),
        "topic" => of::<TopicView>(),
        "doctor" => of::<DoctorView>(),
        "db-status" => of::<DatabaseView>(),
        "roles" => of::<RoleList>(),
        "worker-test" => of::<WorkerTestView>(),
        "worker-run" => of::<WorkerLine>(),
        "workers" => of::<WorkerList>(),
        "worker" => of::<WorkerView>(),
        "work-claim" => of::<ClaimedView>(),
        "work-heartbeat" => of::<HeartbeatView>(),
        "work-report" => of::<AcceptedView>(),
        "config-show" => of::<ConfigView>(),
        "config-path" => of::<ConfigPaths>(),
        "daemon-status" => of::<DaemonView>(),
        "page-link" => of::<PageLink>(),
        "token-made" => of::<TokenMade>(),
        "tokens" => of::<TokenList>(),
        "token" => of::<TokenView>(),
        "version" => of::<VersionView>(),
        "schema" => of::<SchemaList>(),
        planctl_config::FILE_NAME => return Some(planctl_config::schema()),
        _ => return None,
    };
    Some(schema.to_value())
}

/// Attributes of the source are kept, known or not, so that nothing is lost on the way through JSON.
fn graph() -> Schema {
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "GraphRender",
        "type": "object",
        "required": ["nodes", "edges"],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "start": {"type": "string", "description": "The node where a run begins"},
            "nodes": {"type": "array", "items": {
                "type": "object",
                "required": ["id", "kind", "title"],
                "properties": {
                    "id": {"type": "string"},
                    "kind": {"type": "string"},
                    "title": {"type": "string"},
                },
            }},
            "edges": {"type": "array", "items": {
                "type": "object",
                "required": ["from", "to", "on"],
                "properties": {
                    "from": {"type": "string"},
                    "to": {"type": "string"},
                    "on": {"enum": ["success", "fail", "retry", "exhaust", "always"]},
                    "when": {"type": "string", "description": "The condition"},
                    "label": {"type": "string"},
                    "weight": {"type": "integer"},
                },
            }},
        },
    })
}

fn of<T: JsonSchema>() -> Schema {
    settings().into_generator().into_root_schema_for::<T>()
}

fn schema_of_either<A: JsonSchema, B: JsonSchema>() -> Schema {
    let mut generator = settings().into_generator();
    let (one, other) = (generator.subschema_for::<A>(), generator.subschema_for::<B>());
    let mut root = json_schema!({ "anyOf": [one, other] });
    root.insert("$schema".to_owned(), Value::from(schemars::consts::meta_schemas::DRAFT2020_12));
    root.insert("$defs".to_owned(), Value::Object(generator.take_definitions(true)));
    root
}

// As it is written: a field that may be null is always there.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().for_serialize()
}
