//! Vectors of intents and tools, by an embeddings endpoint; each text is paid for once.

use std::collections::{BTreeMap, BTreeSet};

use planctl_lang::digest_of_text;
use planctl_planner::{Intent, Resolver, Source, Vectors, planned, text_to_embed};

use super::super::draft::kept::Kept;
use super::super::draft::writer::stopped_failure;
use super::resolve::{Asked, Record};
use crate::failure::Failure;
use crate::model::{AskedAgain, Model};
use crate::stop::Stop;

/// How many texts one call asks for.
const TEXTS_AT_ONCE: usize = 128;
/// So many vectors are kept; beyond that only those of the present tools.
const KEPT: usize = 50_000;

/// Returns the vectors of all tools and of the intents that only a description can find; nothing where there is no such intent.
pub(super) async fn vectors(
    (own, record): (&Kept<'_>, &mut Record),
    model: &Model,
    by_words: &Resolver<'_>,
    intents: &[Intent],
    asked: Asked<'_>,
) -> Result<Option<Vectors>, Failure> {
    let found = planned(intents, by_words, &BTreeMap::new()).found;
    let is_hard = |intent: &&Intent| {
        let tried = found.get(&intent.id).map(|found| found.tried.as_slice()).unwrap_or_default();
        tried.iter().any(|tried| tried.source == Source::Semantic)
    };
    let hard: Vec<String> = intents.iter().filter(is_hard).map(|intent| intent.text.clone()).collect();
    if hard.is_empty() {
        return Ok(None);
    }
    let tools = by_words.catalog.capabilities().map(text_to_embed);
    let texts: Vec<String> = hard.into_iter().chain(tools).collect::<BTreeSet<_>>().into_iter().collect();
    let kept = Kept::lock(own.database, &["vectors", &model.key()])?;
    let mut known = kept.read::<BTreeMap<String, Vec<f32>>>()?.unwrap_or_default();
    if known.len() > KEPT {
        let present: BTreeSet<String> = texts.iter().map(|text| digest_of_text(text).to_string()).collect();
        known.retain(|digest, _| present.contains(digest));
    }
    let missing: Vec<String> =
        texts.iter().filter(|text| !known.contains_key(digest_of_text(text).as_str())).cloned().collect();
    let mut stop = Stop::listen()?;
    for batch in missing.chunks(TEXTS_AT_ONCE) {
        let say = |again: &AskedAgain| own.database.context().say(&again.to_string());
        let mut allowance = asked.allowance(own, record);
        let embedded = tokio::select! {
            embedded = model.embed(batch, &say, &mut allowance) => embedded?,
            exit = stop.wait_for_signal() => return Err(stopped_failure(exit)),
        };
        known.extend(batch.iter().map(|text| digest_of_text(text).to_string()).zip(embedded.vectors));
        // First what was paid for, then its price.
        kept.write(&known)?;
        record.spent.add(Some(embedded.tokens), embedded.micro_usd);
        own.keep(&*record, asked.goal).await?;
    }
    let mut vectors = Vectors::default();
    for text in &texts {
        if let Some(vector) = known.get(digest_of_text(text).as_str()) {
            vectors.insert(text, vector.clone());
        }
    }
    Ok(Some(vectors))
}
