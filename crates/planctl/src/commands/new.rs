//! `planctl new`: writes a plan to begin with, from a template or from another plan.

use std::path::{Path, PathBuf};

use planctl_lang::workflow::{self, Language, Library as Placement};
use planctl_lang::{
    Code, Facts, FileFact, Levels, Source, TEMPLATES, Template, did_you_mean, instantiate, parse, slug,
};
use planctl_server::library::Origin;

use super::{Context, expand, graph, library, write};
use crate::args::Beginning;
use crate::failure::{Answer, Exit, Failure};
use crate::flags::Format;
use crate::next;
use crate::plan_files;
use crate::show;

/// Writes a plan that is not there yet.
pub fn run(context: &Context, file: Option<&Path>, how: &Beginning) -> Answer {
    context.format(&[Format::Human])?;
    if how.list || how.from.as_deref() == Some("list") {
        let mut rows: Vec<Vec<String>> = TEMPLATES
            .iter()
            .map(|template| vec![template.name.to_owned(), template.about.to_owned()])
            .collect();
        let own =
            plan_files::library(context).found.into_iter().filter(|found| found.origin != Origin::BuiltIn);
        for found in own {
            rows.retain(|row| row[0] != found.entry.id);
            rows.push(vec![show::safe(&found.entry.id), show::safe(&found.entry.title)]);
        }
        show::print(&show::table(&["TEMPLATE", "WHAT IT IS FOR"], rows))?;
        return Ok(Exit::Yes);
    }
    let file = file.map(|file| with_ending(context, file)).transpose()?;
    let file = file.as_deref();
    let (source, place) = template(context, how.from.as_deref(), file)?;
    let named = file.and_then(Path::file_stem).map(|stem| title_of(&stem.to_string_lossy()));
    let title = how.title.clone().or(named);
    if title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Failure::usage("the title is empty"));
    }
    let owner = how.owner.clone().unwrap_or_else(|| context.actor());
    let name =
        title.clone().or_else(|| parse(&source).0.head.title.map(|title| title.value)).unwrap_or_default();
    let file = file.map_or_else(|| plan_files::in_folder(context, &slug(&name)), Path::to_owned);
    let language = Language::of(&file.to_string_lossy());
    write::refuse_other_language(&file, language)?;
    let source = match language {
        None => convert_to(source, None)?,
        Some(_) => source,
    };
    let source = match Language::of(source.path()) {
        None => Source::new(source.path(), instantiate(&source, title.as_deref(), &owner, place.as_ref())),
        Some(_) => source,
    };
    let text = convert_to(source, language)?.text().to_owned();
    put(context, &file, &text, how.force)?;
    show::print(&format!(
        "wrote {}\n{}{}\n",
        show::safe(&file.display().to_string()),
        missing_inputs(context, &Source::new(file.display().to_string(), text)),
        next::line(&format!("planctl verify {}", show::file_word(&file)))
    ))?;
    Ok(Exit::Yes)
}

/// Returns a line for each file that the plan reads and that has to be there before its run.
fn missing_inputs(context: &Context, source: &Source) -> String {
    let plan = planctl_lang::read(source);
    let missing = plan.wants().files.into_iter().filter(|path| !context.workspace().join(path).exists());
    let files = missing.map(|path| (path, FileFact::Missing)).collect();
    let found = plan.judge(&Facts { files, ..Facts::default() }, &Levels::default()).diagnostics;
    let inputs = found.iter().filter(|found| found.code == Code::P201 && found.is_error());
    inputs.map(|input| format!("{}: write it before the run\n", input.message)).collect()
}

/// Returns a plan in a language, markdown where it is none.
fn convert_to(source: Source, to: Option<Language>) -> Result<Source, Failure> {
    let from = Language::of(source.path());
    if from == to {
        return Ok(source);
    }
    let graphs = match from {
        None => vec![workflow::of_plan(&source, &parse(&source).0).0],
        Some(language) => workflow::check(&source, language).0,
    };
    let [graph] = graphs.as_slice() else {
        let message = format!("{} has {} graphs, and a plan is one", show::safe(source.path()), graphs.len());
        return Err(
            Failure::new(Exit::No, message).help("planctl graph render FILE --entry NAME writes one of them")
        );
    };
    let text = graph::converted_text(workflow::convert(&source, graph, to), &source, to)?;
    Ok(Source::new(format!("plan.{}", to.map_or("md", Language::ending)), text))
}

/// Returns the file that is to be written, where its name may lack the ending, and the folder with it.
fn with_ending(context: &Context, file: &Path) -> Result<PathBuf, Failure> {
    let name = file.to_string_lossy();
    if name == "-" {
        return Err(Failure::usage("a new plan is written to a file, not to standard output")
            .help("planctl new FILE, or no name for one after its title"));
    }
    // A folder says what it is when it is to be written.
    if file.extension().is_some() || name.ends_with('/') || file.is_dir() {
        return Ok(file.to_owned());
    }
    Ok(match plan_files::is_bare(file) {
        true => plan_files::in_folder(context, &name),
        false => PathBuf::from(format!("{name}.md")),
    })
}

/// Writes a plan that is not there yet, or over one that is.
pub fn put(context: &Context, file: &Path, text: &str, is_forced: bool) -> Result<(), Failure> {
    if is_forced && file.exists() {
        let old = expand::read(file)?;
        return if old.text() == text { Ok(()) } else { write::replace(context, file, old.text(), text) };
    }
    write::create(file, text).map_err(|failure| {
        if failure.exit != Exit::Conflict {
            return failure;
        }
        failure.help("choose another name, or write over it with --force")
    })
}

/// Returns what a plan begins as, and its place in the library: an entry, a template, or a plan by its path.
pub fn template(
    context: &Context,
    from: Option<&str>,
    file: Option<&Path>,
) -> Result<(Source, Option<Placement>), Failure> {
    let name = from.unwrap_or(TEMPLATES[0].name);
    let library = plan_files::library(context);
    if let Some(found) = library.entry(name) {
        return Ok((library::plan_of(found, file)?, Some(Placement::made_of(name))));
    }
    if let Some(Template { text, .. }) = TEMPLATES.iter().find(|template| template.name == name) {
        return Ok((Source::new(name, *text), None));
    }
    if let Some(file) = plan_files::lookup(context.workspace(), Path::new(name))? {
        let is_graph = Language::of(&file.to_string_lossy()).is_some();
        let read = if is_graph { expand::read_any } else { expand::read };
        return Ok((read(&file)?, None));
    }
    let own = library.found.iter().filter(|found| found.origin != Origin::BuiltIn);
    let own = own.map(|found| found.entry.id.as_str());
    let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).chain(own).collect();
    let near = did_you_mean(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    Err(Failure::not_found(format!("there is no template and no plan `{}`", show::safe(name))).help(format!(
        "{}templates: {}, or the path of a plan",
        near.unwrap_or_default(),
        names.join(", ")
    )))
}

// `fix-the-login` is shown as `Fix the login`.
pub fn title_of(stem: &str) -> String {
    let words = stem.replace(['-', '_'], " ");
    let mut characters = words.trim().chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
