//! The controllers of a simulation, which crash, and come back as other versions.

use std::{collections::BTreeMap, sync::Arc};

use kausality_sandbox::{
    Running, Sandbox, User,
    controllers::{
        Child, Composite, Controller, DEPLOYMENTS, Deployments, GarbageCollector, Kubelet, Manner,
        ReplicaSets, Resource, Scheduler,
    },
};
use serde_json::json;

use crate::{OPERATOR, dice::Dice, line::Line, oracle::Oracle, weather::Sky};

/// All of them.
const NAMES: [&str; 6] = ["deployments", "replicasets", "garbage", "scheduler", "kubelet", "operator"];

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
        let manner = Manner { tells_generation: dice.chance(700), flaps: dice.chance(300) };
        oracle.note(format_args!("{manner:?}"));
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
            _ => Box::new(self.operator()),
        }
    }

    fn operator(&self) -> Composite {
        let settings = json!({
            "metadata": {"name": "$(metadata.name)-settings"},
            "data": {"size": "size $(spec.size)", "version": "version $(version)", "color": "$(spec.color)"},
        });
        let labels = json!({"app": "$(metadata.name)"});
        let web = json!({
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
        let config_maps = resource("", "configmaps", "ConfigMap");
        let children = vec![
            Child { resource: config_maps, template: settings },
            Child { resource: DEPLOYMENTS.clone(), template: web },
        ];
        let mut operator = Composite::new("operator", OPERATOR, stacks(), children);
        operator.set_version(self.version);
        operator.set_manner(self.manner);
        operator
    }
}
