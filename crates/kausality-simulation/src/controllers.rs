//! The controllers of a simulation, which crash, and come back as other versions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kausality_sandbox::{
    Running, Sandbox, User,
    controllers::{
        Child, Composite, Controller, DEPLOYMENTS, Deployments, GarbageCollector, Kubelet, Manner,
        ReplicaSets, Resource, Scheduler,
    },
};
use serde_json::json;

use crate::{OPERATOR, dice::Dice, line::Line, oracle::Oracle, weather::Sky};

/// All of them, but for the operator's second loop, which starts and ends with the operator.
const NAMES: [&str; 6] = ["deployments", "replicasets", "garbage", "scheduler", "kubelet", "operator"];

/// The quiet time where there is one, which is the default of the product.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// The loop that writes ConfigMaps where the operator has two, and does not report.
const SECOND_LOOP: &str = "settings";

/// Controllers at work.
pub(crate) struct Controllers {
    seed: u64,
    sandbox: Sandbox,
    sky: Arc<Sky>,
    oracle: Arc<Oracle>,
    dice: Dice,
    running: BTreeMap<&'static str, Running>,
    lines: BTreeMap<&'static str, Line>,
    started: u64,
    version: u64,
    manner: Manner,
    two_loops: bool,
}

/// How the operator of a seed works.
pub(crate) struct Habits {
    manner: Manner,
    two_loops: bool,
}

impl Habits {
    pub(crate) fn of(seed: u64) -> Self {
        // The first two as ever, so that earlier seeds play as they did.
        let dice = Dice::new(seed, "controllers");
        let (tells_generation, flaps) = (dice.chance(700), dice.chance(300));
        let dice = Dice::new(seed, "habits");
        let reports_first = tells_generation && dice.chance(250);
        let copies_annotations = dice.chance(250);
        let writes_spec = dice.chance(250);
        let manner = Manner {
            tells_generation,
            flaps,
            reports_first,
            copies_annotations,
            writes_spec,
            is_silent: false,
        };
        Self { manner, two_loops: dice.chance(250) }
    }

    /// The quiet time of a seed. An operator that may report before it is done needs one; half of the others have none, so
    /// that nothing hides behind it.
    pub(crate) fn quiet_time(&self, seed: u64) -> Duration {
        let hasty = self.manner.reports_first || self.two_loops;
        if hasty || Dice::new(seed, "quiet time").chance(500) { QUIET_TIME } else { Duration::ZERO }
    }
}

/// The kind whose objects have a ConfigMap and a Deployment.
pub(crate) fn stacks() -> Resource {
    resource("example.com", "stacks", "Stack")
}

fn resource(group: &str, plural: &str, kind: &str) -> Resource {
    Resource::new(group.to_owned(), "v1".to_owned(), plural.to_owned(), kind.to_owned(), true)
}

impl Controllers {
    pub(crate) fn new(seed: u64, sandbox: &Sandbox, sky: &Arc<Sky>, oracle: &Arc<Oracle>) -> Self {
        let dice = Dice::new(seed, "controllers");
        // Drawn by the habits.
        let _ = (dice.chance(700), dice.chance(300));
        let Habits { manner, two_loops } = Habits::of(seed);
        oracle.note(format_args!("{manner:?}, two loops: {two_loops}"));
        for (habit, holds) in [
            ("operators that report first", manner.reports_first),
            ("operators that copy annotations", manner.copies_annotations),
            ("operators that write their spec", manner.writes_spec),
            ("operators with two loops", two_loops),
        ] {
            if holds {
                oracle.count(habit);
            }
        }
        let mut controllers = Self {
            seed,
            sandbox: sandbox.clone(),
            sky: sky.clone(),
            oracle: oracle.clone(),
            dice,
            running: BTreeMap::new(),
            lines: BTreeMap::new(),
            started: 0,
            version: 1,
            manner,
            two_loops,
        };
        NAMES.iter().for_each(|name| controllers.start(name));
        controllers
    }

    /// One of them crashes and starts again; the operator may come back as its next version, which wants its children
    /// otherwise.
    pub(crate) fn restart_one(&mut self) {
        let name = self.dice.pick(&NAMES).copied().unwrap_or_default();
        if name == "operator" && self.dice.chance(500) {
            self.upgrade();
        }
        self.oracle.note(format_args!("{name} crashes, and starts at version {}", self.version));
        self.oracle.count("controllers restarted");
        self.start(name);
    }

    /// The operator comes back as its next version.
    pub(crate) fn upgrade(&mut self) {
        self.version += 1;
        self.oracle.note(format_args!("the operator is upgraded to version {}", self.version));
        self.start("operator");
    }

    /// Which version of the operator runs.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn start(&mut self, name: &'static str) {
        if name == "operator" && self.two_loops {
            self.start(SECOND_LOOP);
        }
        self.started += 1;
        self.running.remove(name);
        if let Some(line) = self.lines.remove(name) {
            line.die();
        }
        let controller = self.controller(name);
        let user = User::admin(&controller.user());
        let dice = Dice::new(self.seed, &format!("{name} {}", self.started));
        let line = Line::new(&self.sandbox, user, &self.sky, dice);
        self.lines.insert(name, line.clone());
        self.running.insert(name, self.sandbox.run_over(Arc::new(line), controller));
    }

    fn controller(&self, name: &str) -> Box<dyn Controller + Send> {
        match name {
            "deployments" => Box::new(Deployments::default()),
            "replicasets" => Box::new(ReplicaSets::default()),
            "garbage" => Box::new(GarbageCollector::default()),
            "scheduler" => Box::new(Scheduler::default()),
            "kubelet" => Box::new(Kubelet::default()),
            SECOND_LOOP => {
                let mut second = self.operator(name, vec![settings()]);
                second.set_manner(Manner {
                    is_silent: true,
                    writes_spec: false,
                    reports_first: false,
                    ..self.manner
                });
                Box::new(second)
            }
            _ if self.two_loops => Box::new(self.operator(name, vec![web()])),
            _ => Box::new(self.operator(name, vec![settings(), web()])),
        }
    }

    fn operator(&self, name: &str, children: Vec<Child>) -> Composite {
        let mut operator = Composite::new(name, OPERATOR, stacks(), children);
        operator.set_version(self.version);
        operator.set_manner(self.manner);
        operator
    }
}

/// The ConfigMap of a Stack.
fn settings() -> Child {
    let template = json!({
        "metadata": {"name": "$(metadata.name)-settings"},
        "data": {"size": "size $(spec.size)", "version": "version $(version)", "color": "$(spec.color)"},
    });
    Child { resource: resource("", "configmaps", "ConfigMap"), template }
}

/// The Deployment of a Stack.
fn web() -> Child {
    let labels = json!({"app": "$(metadata.name)"});
    let template = json!({
        "metadata": {"name": "$(metadata.name)-web"},
        "spec": {
            "replicas": "$(spec.size)",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"color": "$(spec.color)"}},
                "spec": {"containers": [{"name": "web", "image": "web:$(version)"}]},
            },
        },
    });
    Child { resource: DEPLOYMENTS.clone(), template }
}
