//! `planctl graph …`: graphs of DOT, JSON and markdown, checked and drawn; needs no database.

use std::path::Path;

use planctl_api::wire::{ParallelView, SideBySide};
use planctl_engine::NodeId;
use planctl_harness::read_plan;
use planctl_lang::workflow::{self, Converted, Language, Stages, Workflow};
use planctl_lang::{Code, Diagnostic, Levels, Report, Severity, Source, Verification};
use planctl_server::picture;

use super::Context;
use super::verify::{grouped, print_reports};
use crate::args::GraphCommand;
use crate::checking;
use crate::client::Client;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::plan_files;
use crate::show::{self, BAD, BOLD, CARE, GOOD, styled};

const DRAWINGS: [Format; 6] =
    [Format::Ascii, Format::Svg, Format::Dot, Format::Mermaid, Format::Markdown, Format::Json];

/// Does what was typed.
pub async fn run(context: &Context, command: GraphCommand) -> Answer {
    match command {
        GraphCommand::Check { files } => {
            let format = context.format(&[Format::Human, Format::Json, Format::Jsonl])?;
            let mut read = Vec::with_capacity(files.len());
            for file in &files {
                read.push(Read::verified(context, &plan_files::plan_file_named(context, file)?).await?);
            }
            check(&read, format)
        }
        GraphCommand::Parallel { file } => {
            parallel(context, &plan_files::plan_file_named(context, &file)?).await
        }
        GraphCommand::Render { what, entry, output } => {
            let by_ending =
                output.as_deref().map(|file| format_of_file(context, file)).transpose()?.flatten();
            let mut drawings = DRAWINGS;
            drawings.sort_by_key(|format| Some(*format) != by_ending);
            let format = context.format(&drawings)?;
            let found = plan_files::named_unless_run(context, &what)?;
            let text = if let Some(file) = &found {
                let read = Read::file(context, file).await?;
                let workflow = select_graph(&read, entry.as_deref())?;
                // Text in DOT is kept to the letter, also where planctl knows nothing of it (D21).
                let is_dot = Language::of(read.source.path()) == Some(Language::Dot) && format == Format::Dot;
                match is_dot.then(|| workflow::dot_text(&read.source)).flatten() {
                    Some(text) => format!("{}\n", text.trim_end()),
                    None => match language_of(format) {
                        Some(to) => {
                            converted_text(workflow::convert(&read.source, workflow, to), &read.source, to)?
                        }
                        None => render(workflow, &Stages::new(), format)?,
                    },
                }
            } else if entry.is_some() {
                let help = "a run has one graph: leave --entry out";
                return Err(Failure::usage(format!("{} is not a library", show::safe(&what))).help(help));
            } else {
                draw_run(context, &what, format).await?
            };
            match output {
                None => show::print(&text)?,
                Some(output) => write_drawing(context, found.as_deref(), &output, &text)?,
            }
            Ok(Exit::Yes)
        }
    }
}

/// Names the nodes that may be worked on at once.
async fn parallel(context: &Context, file: &Path) -> Answer {
    let is_json = context.is_json()?;
    let checked = checking::check(context, file, None, &Levels::default()).await?;
    let name = file.to_string_lossy();
    let Some(graph) = &checked.verification.graph else {
        let message = format!("{} is not verified", show::safe(&name));
        return Err(Failure::new(Exit::No, message).help(format!("planctl verify {}", show::file_word(file))));
    };
    let names = |ids: Vec<NodeId>| ids.iter().map(|id| id.as_str().to_owned()).collect();
    let forks = planctl_view::parallel_branches(graph).into_iter().map(|fork| SideBySide {
        fork: fork.fork.as_str().to_owned(),
        join: fork.join.map(|join| join.as_str().to_owned()),
        branches: fork.branches.into_iter().map(names).collect(),
    });
    let view = ParallelView { file: name.into_owned(), forks: forks.collect() };
    if is_json {
        show::print_json(&view)?;
        return Ok(Exit::Yes);
    }
    let mut text = String::new();
    for fork in &view.forks {
        let join = fork.join.as_ref().map(|join| format!(", until {}", show::safe(join))).unwrap_or_default();
        text.push_str(&format!("after {}{join}:\n", styled(BOLD, &show::safe(&fork.fork))));
        for branch in &fork.branches {
            text.push_str(&format!("  {}\n", show::safe(&branch.join(", "))));
        }
    }
    if view.forks.is_empty() {
        text.push_str("nothing is done side by side: no node is a fork\n");
    }
    show::print(&text)?;
    Ok(Exit::Yes)
}

/// A file with the graphs in it.
struct Read {
    source: Source,
    workflows: Vec<Workflow>,
    found: Vec<Diagnostic>,
    /// How many warnings `plan verify` has about other things than the graph.
    other_warnings: usize,
}

impl Read {
    /// Reads a file and judges its graph as `plan verify` does: each error there is one here (DOT B3). Warnings about other
    /// things than the graph are left to that command.
    async fn verified(context: &Context, file: &Path) -> Result<Read, Failure> {
        let mut read = Read::file(context, file).await?;
        if read.workflows.len() != 1 {
            return Ok(read);
        }
        let checked = checking::check(context, file, None, &Levels::default()).await?;
        let is_of_graph = |found: &Diagnostic| found.is_error() || found.code.family() == Code::P301.family();
        let (of_graph, others): (Vec<Diagnostic>, Vec<Diagnostic>) =
            checked.verification.diagnostics.into_iter().partition(is_of_graph);
        read.other_warnings = others.iter().filter(|found| found.level == Severity::Warning).count();
        for found in of_graph {
            let is_known = |other: &Diagnostic| other.code == found.code && other.spans == found.spans;
            if !read.found.iter().any(is_known) {
                read.found.push(found);
            }
        }
        read.found.sort_by_key(|found| found.spans.first().map_or(0, |label| label.span.start));
        Ok(read)
    }

    async fn file(context: &Context, file: &Path) -> Result<Read, Failure> {
        let name = file.to_string_lossy();
        let Some(language) = Language::of(&name) else {
            let checked = checking::check(context, file, None, &Levels::default()).await?;
            let Verification { tree, diagnostics, .. } = checked.verification;
            if tree.steps.is_empty() {
                let found = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
                return Ok(Read { source: checked.source, workflows: Vec::new(), found, other_warnings: 0 });
            }
            let (workflow, found) = workflow::of_plan(&checked.source, &tree);
            return Ok(Read { source: checked.source, workflows: vec![workflow], found, other_warnings: 0 });
        };
        let bytes = read_plan(file).map_err(|error| plan_files::unreadable(file, &error))?;
        let source = match Source::of_text(name.as_ref(), bytes) {
            Ok(source) => source,
            Err(unread) => {
                let found = vec![unread.diagnostic];
                return Ok(Read { source: unread.source, workflows: Vec::new(), found, other_warnings: 0 });
            }
        };
        let (workflows, found) = workflow::check(&source, language);
        Ok(Read { source, workflows, found, other_warnings: 0 })
    }

    fn report(&self) -> Report {
        let report = Report::of_findings(&self.source, &self.found);
        // Of several graphs none is verified as the plan of a run.
        Report { verified: report.verified && self.workflows.len() == 1, ..report }
    }

    /// Says what was not looked at, where `plan verify` says more of the file than this command.
    fn unchecked_words(&self) -> Option<String> {
        let name = show::file_word(Path::new(self.source.path()));
        match (self.workflows.len(), self.other_warnings) {
            (0, _) | (1, 0) => None,
            (1, count) => {
                let warnings = if count == 1 { "1 warning".to_owned() } else { format!("{count} warnings") };
                Some(next::commands_here(&format!("planctl verify {name} has {warnings} about other things")))
            }
            (_, _) => Some(next::commands_here(&format!(
                "contracts and files were not looked at: planctl verify takes one graph, \
                 planctl graph render {name} --entry NAME --format json writes it"
            ))),
        }
    }

    fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    fn count(&self, level: Severity) -> usize {
        self.found.iter().filter(|found| found.level == level).count()
    }

    /// Says whether no error is of the graph, or of the form from which it was read.
    fn is_sound(&self) -> bool {
        let families = [Code::P001.family(), Code::P301.family()];
        !self.found.iter().any(|found| found.is_error() && families.contains(&found.code.family()))
    }
}

fn check(read: &[Read], format: Format) -> Answer {
    let exit = if read.iter().all(|read| read.errors() == 0) { Exit::Yes } else { Exit::No };
    if format != Format::Human {
        let reports: Vec<Report> = read.iter().map(Read::report).collect();
        print_reports(&reports, format)?;
        return Ok(exit);
    }
    for read in read {
        let shown = read.found.iter().filter(|found| found.level != Severity::Note);
        show::print(&grouped(shown, &read.source))?;
        show::print(&findings_summary(read))?;
    }
    Ok(exit)
}

fn findings_summary(read: &Read) -> String {
    let (errors, warnings) = (read.errors(), read.count(Severity::Warning));
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let (noun, several) = match read.workflows.len() {
        0 | 1 => ("graph", String::new()),
        count => ("graphs", format!("{count} ")),
    };
    let (word, of_what) = match (read.is_sound(), errors) {
        (true, 0) => (styled(GOOD, &format!("{several}sound {noun}")), ""),
        (true, _) => (styled(CARE, &format!("{several}sound {noun}")), " about other things"),
        (false, _) => (styled(BAD, &format!("no sound {noun}")), ""),
    };
    let sizes: Vec<String> = read
        .workflows
        .iter()
        .map(|one| format!("{}, {}", counted(one.nodes.len(), "node"), counted(one.edges.len(), "edge")))
        .collect();
    let name = show::safe(read.source.path());
    let size = if sizes.is_empty() { "no graph".to_owned() } else { sizes.join("; ") };
    let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
    let mut text = format!("{name}: {word} · {size} · {errors}{of_what}, {warnings}\n");
    if let Some(unsaid) = read.unchecked_words().filter(|_| read.errors() == 0) {
        text.push_str(&format!("  {unsaid}\n"));
    }
    text
}

/// Draws the graph that a run executes, and where each of its nodes stands.
async fn draw_run(context: &Context, run: &str, format: Format) -> Result<String, Failure> {
    let client = Client::open(context).await?;
    let handle = client.find(run).await.map_err(|failure| plan_files::or_near(context, run, failure))?;
    let checked = client.plan_of_run(handle).await?;
    let view = client.status(handle).await?;
    let Some(graph) = &checked.verification.graph else {
        return Err(Failure::new(Exit::No, format!("{} has no graph", show::safe(&view.run))));
    };
    if let Some(to) = language_of(format) {
        return converted_text(workflow::convert_graph(graph, to), &checked.source, to);
    }
    let mut workflow = workflow::of_graph(graph);
    if format == Format::Svg {
        let title = format!("{} · {} · {}", graph.title(), view.run, show::run_state(view.state));
        workflow.title = Some(planctl_lang::Spanned::new(title, planctl_lang::Span::at(0)));
    }
    render(&workflow, &picture::stages(&view), format)
}

/// Writes a drawing to a file of its own.
fn write_drawing(context: &Context, source: Option<&Path>, output: &Path, text: &str) -> Result<(), Failure> {
    let name = show::safe(&output.display().to_string());
    let source = source.and_then(|source| source.canonicalize().ok());
    let is_source = source.is_some() && source == output.canonicalize().ok();
    if is_source {
        return Err(Failure::usage(format!("{name} is what is drawn: it is not written over"))
            .help("name another file"));
    }
    std::fs::write(output, text).map_err(|error| Failure::of_io(format!("write {name}"), &error))?;
    context.say(&format!("wrote {name}"));
    Ok(())
}

/// Returns the form that the name of a drawing's file stands for, where it ends in one; of a picture that planctl can't draw,
/// another form has to be named.
fn format_of_file(context: &Context, file: &Path) -> Result<Option<Format>, Failure> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    Ok(match ending.as_deref() {
        Some("svg") => Some(Format::Svg),
        Some("dot" | "gv") => Some(Format::Dot),
        Some("mmd" | "mermaid") => Some(Format::Mermaid),
        Some("md") => Some(Format::Markdown),
        Some("json") => Some(Format::Json),
        Some("png" | "pdf" | "jpg" | "jpeg" | "gif" | "webp") if !context.names_format() => {
            let name = show::safe(&file.display().to_string());
            return Err(Failure::usage(format!(
                "could not draw {name}: planctl does not write such pictures"
            ))
            .help("name a file that ends with .svg, .dot, .mmd, .md or .json, or say --format"));
        }
        Some(_) | None => None,
    })
}

/// Returns the language in which a plan is written in this form, where that is one; nothing in it is markdown.
fn language_of(format: Format) -> Option<Option<Language>> {
    match format {
        Format::Dot => Some(Some(Language::Dot)),
        Format::Json => Some(Some(Language::Json)),
        Format::Markdown => Some(None),
        Format::Ascii
        | Format::Svg
        | Format::Mermaid
        | Format::Human
        | Format::Jsonl
        | Format::Plain
        | Format::Sarif
        | Format::Github
        | Format::Long
        | Format::Compact
        | Format::Workflow => None,
    }
}

/// Returns the text of a plan in another language, unless that would be judged in another way.
pub fn converted_text(written: Converted, of: &Source, to: Option<Language>) -> Result<String, Failure> {
    if !written.is_compared {
        let name = show::file_word(Path::new(of.path()));
        show::say(&styled(CARE, "warning: the plan has errors, so nothing could compare the two texts"));
        show::say(&next::commands_here(&format!("help: planctl verify {name}")));
    }
    for lost in &written.lost {
        show::say(&format!("not written: {}", show::safe(lost)));
    }
    if !written.changed.is_empty() {
        let changed = show::safe(&written.changed.join(", "));
        let message = format!("the plan would be judged in another way: {changed} can't be written");
        return Err(Failure::new(Exit::No, message).help("write it in the language that it has, or by hand"));
    }
    let text =
        if to == Some(Language::Json) { planctl_lang::json_escaped(written.text) } else { written.text };
    Ok(format!("{}\n", text.trim_end()))
}

fn render(workflow: &Workflow, stages: &Stages, format: Format) -> Result<String, Failure> {
    let text = match format {
        Format::Mermaid => workflow::to_mermaid(workflow),
        Format::Svg => picture::svg(workflow, stages).map_err(|undrawable| {
            Failure::new(Exit::No, undrawable.to_string()).help("draw it with letters: --format ascii")
        })?,
        Format::Ascii
        | Format::Dot
        | Format::Markdown
        | Format::Json
        | Format::Human
        | Format::Jsonl
        | Format::Plain
        | Format::Sarif
        | Format::Github
        | Format::Long
        | Format::Compact
        | Format::Workflow => workflow::to_ascii_at(workflow, stages),
    };
    Ok(format!("{}\n", text.trim_end()))
}

/// Returns the graph that is meant: the only one, or the one that was named.
fn select_graph<'r>(read: &'r Read, entry: Option<&str>) -> Result<&'r Workflow, Failure> {
    let name = |workflow: &'r Workflow| workflow.name.as_ref().map_or("", |name| name.value.as_str());
    let names: Vec<&str> = read.workflows.iter().map(name).filter(|name| !name.is_empty()).collect();
    let path = show::file_word(Path::new(read.source.path()));
    let listed = || match names.as_slice() {
        [] => "it has one graph: leave --entry out".to_owned(),
        names => format!("it has: {}", show::safe(&names.join(", "))),
    };
    let is_read = |only: &Workflow| !only.nodes.is_empty() || read.errors() == 0;
    match (entry, read.workflows.as_slice()) {
        (None, [only]) if is_read(only) => Ok(only),
        (None, [] | [_]) => {
            let why = read.found.iter().find(|found| found.is_error());
            let why = why.map_or_else(String::new, |why| format!(": {}", why.message));
            Err(Failure::new(Exit::No, format!("{path} has no graph that can be read{why}"))
                .help(format!("planctl graph check {path} says where, and how it is written")))
        }
        (None, _) => Err(Failure::usage(format!("{path} has {} graphs", read.workflows.len()))
            .help(format!("name one with --entry: {}", show::safe(&names.join(", "))))),
        (Some(wanted), workflows) => workflows.iter().find(|one| name(one) == wanted).ok_or_else(|| {
            let near = planctl_lang::did_you_mean(wanted, names.iter().copied());
            let help = near.map_or_else(listed, |near| format!("did you mean `{near}`?"));
            Failure::not_found(format!("{path} has no graph `{}`", show::safe(wanted))).help(help)
        }),
    }
}
