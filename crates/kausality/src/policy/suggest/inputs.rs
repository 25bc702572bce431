//! Inputs that would explain drifts: what somebody else changed shortly before, by the narrowest relation that explains it.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use anyhow::Result;
use kausality_api::{
    API_VERSION,
    mode::Mode,
    policy::{Input, Kausality, KausalitySpec, Metadata, Relation, ResourceRule},
};
use kausality_core::cause::Cause;

use super::Suggest;
use crate::{
    output::count,
    replay::{Fed, Flow, engine::Judged, policies::Loaded},
};

/// The relations, the narrowest first.
const RELATIONS: [Relation; 4] =
    [Relation::Reference, Relation::Selector, Relation::Namespace, Relation::Cluster];

/// How many lines of a recording a note names.
const SHOWN_LINES: usize = 8;

/// A request of the recording: its file, its line, and its uid.
type Place = (String, u64, String);

/// A group and a resource.
type Resource = (String, String);

/// The drifts of a recording, and what came before each.
#[derive(Default)]
struct Drifts(BTreeMap<Place, Drift>);

#[derive(Default)]
struct Drift {
    parent: Resource,
    /// How each change before it could be declared.
    candidates: Vec<Vec<Input>>,
}

/// The drifts that an input would explain, by parent and input, for each relation.
type Explained = BTreeMap<(Resource, Resource), Vec<(Relation, BTreeSet<Place>)>>;

/// Inputs of one kind of parent.
struct Suggestion {
    parent: Resource,
    inputs: Vec<Input>,
    notes: Vec<String>,
}

impl Suggest {
    /// Suggests inputs.
    ///
    /// # Errors
    /// If a file or a policy cannot be read.
    pub(super) fn suggest_inputs(&self) -> Result<ExitCode> {
        let drifts = self.all_of_them()?;
        let mut explained = Explained::new();
        for relation in RELATIONS {
            let policies = drifts.trial(relation);
            if policies.is_empty() {
                continue;
            }
            for (place, input) in self.explained_by(&policies, &drifts)? {
                let Some(drift) = drifts.0.get(&place) else { continue };
                let levels = explained.entry((drift.parent.clone(), input)).or_default();
                match levels.iter_mut().find(|(known, _)| *known == relation) {
                    Some((_, places)) => places.extend([place]),
                    None => levels.push((relation, BTreeSet::from([place]))),
                }
            }
        }
        let suggestions = drifts.suggestions(&explained);
        if suggestions.is_empty() {
            let total = count(drifts.0.len(), "drift");
            anstream::eprintln!(
                "There is nothing to suggest: of {total}, no change of another object explains any. Only audit logs tell when \
                 things happened, and what changes how a controller works is never an input."
            );
            return Ok(ExitCode::FAILURE);
        }
        let policies: Vec<Kausality> =
            suggestions.iter().enumerate().map(|(number, it)| self.inputs_policy(number, it)).collect();
        let proof = self.explained_by(&policies, &drifts)?;
        let left = drifts.0.len().saturating_sub(proof.len());
        let mut notes = vec![format!(
            "Replayed with it, {} of {} {} explained by inputs; {left} {} drift.",
            proof.len(),
            count(drifts.0.len(), "drift"),
            if proof.len() == 1 { "is" } else { "are" },
            if left == 1 { "stays" } else { "stay" },
        )];
        notes.extend(suggestions.into_iter().flat_map(|suggestion| suggestion.notes));
        notes.push(
            "A change shortly before is no proof: check that the controller acts on it. Where a policy covers these resources \
             already, add the inputs to it."
                .to_owned(),
        );
        self.print(&policies, &notes)?;
        Ok(ExitCode::SUCCESS)
    }

    /// All drifts that nothing let pass.
    fn all_of_them(&self) -> Result<Drifts> {
        let mut drifts = Drifts::default();
        self.recording.replay(|file, line, fed| {
            if let Fed::Judged(judged) = fed
                && judged.cause() == Some(Cause::Drift)
                && let Some(parent) = &judged.around.parent
            {
                let candidates = judged.around.candidates.clone();
                drifts.0.insert(place(file, line, judged), Drift { parent: parent.clone(), candidates });
            }
            Ok(Flow::GoOn)
        })?;
        Ok(drifts)
    }

    /// Those of the drifts that are none under these policies, with the kind of input that explains each.
    fn explained_by(&self, policies: &[Kausality], drifts: &Drifts) -> Result<BTreeMap<Place, Resource>> {
        let more = Loaded { policies: policies.to_vec(), ..Loaded::default() };
        let mut explained = BTreeMap::new();
        self.recording.replay_with(more, |file, line, fed| {
            if let Fed::Judged(judged) = fed
                && let Some(input) = &judged.around.input
            {
                let place = place(file, line, judged);
                if drifts.0.contains_key(&place) {
                    explained.insert(place, input.clone());
                }
            }
            Ok(Flow::GoOn)
        })?;
        Ok(explained)
    }

    fn inputs_policy(&self, number: usize, suggestion: &Suggestion) -> Kausality {
        let name = match number {
            0 => self.name.clone(),
            number => format!("{}-{}", self.name, number + 1),
        };
        policy(name, &suggestion.parent, suggestion.inputs.clone())
    }
}

impl Drifts {
    /// Policies that declare all candidates of one relation.
    fn trial(&self, relation: Relation) -> Vec<Kausality> {
        let mut parents: BTreeMap<&Resource, Vec<Input>> = BTreeMap::new();
        for drift in self.0.values() {
            for input in drift.candidates.iter().flatten().filter(|input| input.relation == relation) {
                let inputs = parents.entry(&drift.parent).or_default();
                if !inputs.contains(input) {
                    inputs.push(input.clone());
                }
            }
        }
        let trial = |(parent, inputs): (&Resource, Vec<Input>)| policy("trial".to_owned(), parent, inputs);
        parents.into_iter().map(trial).collect()
    }

    /// For each kind of parent, the narrowest inputs that explain anything.
    fn suggestions(&self, explained: &Explained) -> Vec<Suggestion> {
        let mut suggestions: Vec<Suggestion> = Vec::new();
        for ((parent, input), levels) in explained {
            let Some((relation, places)) = levels.first() else { continue };
            let inputs = self.covering(places, input, *relation);
            let mut notes = vec![note(parent, input, &inputs, places)];
            let wider = levels.iter().filter(|(_, wider)| wider.len() > places.len());
            notes.extend(wider.map(|(relation, wider)| {
                let more = count(wider.difference(places).count(), "more drift");
                format!("With relation {relation:?}, {} would explain {more}.", shown(input))
            }));
            match suggestions.iter_mut().find(|known| known.parent == *parent) {
                Some(known) => {
                    known.inputs.extend(inputs);
                    known.notes.extend(notes);
                }
                None => suggestions.push(Suggestion { parent: parent.clone(), inputs, notes }),
            }
        }
        suggestions
    }

    /// As few inputs of a relation as declare a change before each of these drifts: the one that does for most comes first.
    fn covering(&self, places: &BTreeSet<Place>, resource: &Resource, relation: Relation) -> Vec<Input> {
        let of = |place: &Place| {
            let drift = self.0.get(place).into_iter();
            drift.flat_map(|drift| drift.candidates.iter().flatten()).filter(|input| {
                input.relation == relation
                    && input.api_groups == [resource.0.clone()]
                    && input.resources == [resource.1.clone()]
            })
        };
        let mut left: BTreeSet<&Place> = places.iter().collect();
        let mut chosen: Vec<Input> = Vec::new();
        while !left.is_empty() {
            let mut votes: Vec<(&Input, usize)> = Vec::new();
            for input in left.iter().flat_map(|place| of(place)) {
                match votes.iter_mut().find(|(known, _)| *known == input) {
                    Some((_, number)) => *number += 1,
                    None => votes.push((input, 1)),
                }
            }
            // Of equals, the first that was found.
            let Some((best, _)) = votes.into_iter().rev().max_by_key(|(_, number)| *number) else { break };
            left.retain(|place| !of(place).any(|input| input == best));
            chosen.push(best.clone());
        }
        chosen
    }
}

fn place(file: &str, line: u64, judged: &Judged) -> Place {
    (file.to_owned(), line, judged.uid.clone())
}

fn policy(name: String, (group, resource): &Resource, inputs: Vec<Input>) -> Kausality {
    Kausality {
        api_version: API_VERSION.to_owned(),
        kind: "Kausality".to_owned(),
        metadata: Metadata { name },
        spec: KausalitySpec {
            resources: vec![ResourceRule {
                api_groups: vec![group.clone()],
                resources: vec![resource.clone()],
                excluded: Vec::new(),
            }],
            namespaces: None,
            object_selector: None,
            mode: Mode::Log,
            overrides: Vec::new(),
            settle: None,
            quiet_time: None,
            inputs,
            status: None,
            redact: Vec::new(),
            failure_policy: None,
        },
    }
}

/// `configmaps`, or `issuers.cert-manager.io`.
fn shown((group, resource): &Resource) -> String {
    if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") }
}

fn note(parent: &Resource, input: &Resource, inputs: &[Input], places: &BTreeSet<Place>) -> String {
    let how = match inputs {
        [Input { relation: Relation::Namespace, .. }, ..] => "in the same namespace".to_owned(),
        [Input { relation: Relation::Cluster, .. }, ..] => "anywhere in the cluster".to_owned(),
        inputs => {
            let fields: Vec<&str> = inputs.iter().filter_map(|input| input.field.as_deref()).collect();
            let verb = match inputs {
                [Input { relation: Relation::Selector, .. }, ..] => "selected",
                _ => "named",
            };
            format!("{verb} by {}", fields.join(" or "))
        }
    };
    let lines: Vec<String> = places.iter().take(SHOWN_LINES).map(|(_, line, _)| line.to_string()).collect();
    let more = if places.len() > SHOWN_LINES { ", …" } else { "" };
    let lines = format!("line{} {}{more}", if places.len() == 1 { "" } else { "s" }, lines.join(", "));
    let (parent, input, drifts) = (shown(parent), shown(input), count(places.len(), "drift"));
    format!("{parent}: a change of {input} {how} explains {drifts} ({lines}).")
}
