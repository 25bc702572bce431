//! The sandbox itself: one state behind one function from requests to answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderValue, Method, Request, Response};
use hyper::body::Bytes;
use serde_json::json;

use crate::admission::{Admission, rules::Known, webhook::Callers};
use crate::aggregation;
use crate::answer::{self, Body, Notes};
use crate::audit::{AuditEntry, AuditLog};
use crate::call::Call;
use crate::clock::{Clock, RealClock};
use crate::controllers::Time;
use crate::identity::{self, User};
use crate::kinds::Registry;
use crate::observer::{Observer, Reviewed};
use crate::rbac::{Access, Authorizer};
use crate::request::{self, Query};
use crate::seed::Generator;
use crate::status::Failure;
use crate::store::Store;

/// An API server in memory. Clones share it.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) inner: Arc<Inner>,
}

/// What clones share.
pub(crate) struct Inner {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    admission: Mutex<Vec<Arc<dyn Admission>>>,
    pub(crate) observers: Mutex<Vec<Arc<dyn Observer>>>,
    tokens: Mutex<BTreeMap<String, User>>,
    audit: Mutex<AuditLog>,
    pub(crate) callers: Callers,
    pub(crate) webhooks: Known,
    /// None where everybody may do all.
    pub(crate) authorizer: Option<Authorizer>,
}

/// All that changes with requests. The lock on it is never held across an await.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Arc<Registry>,
    /// Of uids and names of objects. Only writes use it, so that they do not depend on who reads.
    pub(crate) generator: Generator,
    /// Of what names requests: audit ids, uids of reviews, tokens.
    pub(crate) ids: Generator,
    /// How many addresses and ports of services have been given out.
    pub(crate) addresses: u32,
    pub(crate) ports: u32,
}

/// How a sandbox is set up.
pub struct Builder {
    clock: Arc<dyn Clock>,
    seed: u64,
    history: usize,
    audit: usize,
    rbac: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self { clock: Arc::new(RealClock), seed: 0, history: 10_000, audit: 100_000, rbac: false }
    }
}

impl Builder {
    /// Takes the time from this clock, and not from the machine.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes up names and uids from this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many events each resource remembers for those who watch.
    #[must_use]
    pub fn history(mut self, events: usize) -> Self {
        self.history = events.max(1);
        self
    }

    /// How many calls the audit log remembers.
    #[must_use]
    pub fn audit(mut self, calls: usize) -> Self {
        self.audit = calls;
        self
    }

    /// Whether users may do only what roles allow them. There are the roles that every cluster has, and who is in
    /// `system:masters` may do all.
    #[must_use]
    pub fn rbac(mut self, rbac: bool) -> Self {
        self.rbac = rbac;
        self
    }

    /// The sandbox, with the namespaces that every cluster has.
    #[must_use]
    pub fn build(self) -> Sandbox {
        let state = State {
            store: Store::new(self.history),
            registry: Arc::new(Registry::built_in()),
            generator: Generator::new(self.seed),
            ids: Generator::new(!self.seed),
            addresses: 0,
            ports: 0,
        };
        let sandbox = Sandbox {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                clock: self.clock,
                admission: Mutex::default(),
                observers: Mutex::default(),
                tokens: Mutex::default(),
                audit: Mutex::new(AuditLog::new(self.audit)),
                callers: Callers::default(),
                webhooks: Known::default(),
                authorizer: self.rbac.then(Authorizer::default),
            }),
        };
        sandbox.furnish();
        sandbox
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Builder::default().build()
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

impl Sandbox {
    /// A sandbox with settings of one's own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Asks this of every write from now on, after those that were added before. It acts as a mutating webhook does
    /// whose `reinvocationPolicy` is `IfNeeded`.
    pub fn add_admission(&self, admission: Arc<dyn Admission>) {
        lock(&self.inner.admission).push(admission);
    }

    /// Takes an admission back, by its name.
    pub fn remove_admission(&self, name: &str) {
        lock(&self.inner.admission).retain(|admission| admission.name() != name);
    }

    /// Tells somebody of every write from now on.
    pub fn add_observer(&self, observer: Arc<dyn Observer>) {
        lock(&self.inner.observers).push(observer);
    }

    pub(crate) fn admissions(&self) -> Vec<Arc<dyn Admission>> {
        lock(&self.inner.admission).clone()
    }

    /// Lets a user in by a token.
    pub fn add_token(&self, token: &str, user: User) {
        lock(&self.inner.tokens).insert(token.to_owned(), user);
    }

    /// The token of a user; made up, if it has none.
    pub fn token(&self, user: &User) -> String {
        let mut tokens = lock(&self.inner.tokens);
        if let Some((token, _)) = tokens.iter().find(|(_, known)| *known == user) {
            return token.clone();
        }
        let token = self.state().ids.uid();
        tokens.insert(token.clone(), user.clone());
        token
    }

    /// How many calls there were.
    pub fn audited(&self) -> usize {
        lock(&self.inner.audit).len()
    }

    /// The calls from this place on.
    pub fn audit(&self, from: usize) -> Vec<Arc<AuditEntry>> {
        lock(&self.inner.audit).from(from)
    }

    /// Forgets what happened: whoever watches from an earlier resourceVersion is told that it is too old.
    pub fn compact(&self) {
        self.state().store.compact();
    }

    /// The time in the sandbox.
    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.inner.state)
    }

    /// Answers a request. Who sends it is a [`User`] in its extensions, or is known by its token.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let user = match parts.extensions.get::<User>() {
            Some(user) => Ok(user.clone()),
            None => identity::authenticate(&parts.headers, &lock(&self.inner.tokens)),
        };
        let user = user.and_then(|user| {
            self.authorize_impersonation(&parts.headers, &user)?;
            identity::impersonate(&parts.headers, user)
        });
        let mut entry = AuditEntry {
            id: self.state().ids.uid(),
            verb: parts.method.as_str().to_lowercase(),
            user_agent: request::text(&parts.headers, "user-agent").to_owned(),
            ..AuditEntry::default()
        };
        let mut response = match user {
            Err(failure) => answer::failure(&failure),
            Ok(user) => {
                entry.user.clone_from(&user.name);
                self.route(&parts, body, user, &mut entry).await
            }
        };
        entry.code = response.status().as_u16();
        if let Ok(id) = HeaderValue::from_str(&entry.id) {
            response.headers_mut().insert("audit-id", id);
        }
        if parts.method == Method::HEAD {
            *response.body_mut() = answer::nothing();
        }
        lock(&self.inner.audit).add(entry);
        response
    }

    async fn route(
        &self,
        parts: &http::request::Parts,
        body: Bytes,
        user: User,
        entry: &mut AuditEntry,
    ) -> Response<Body> {
        let path = parts.uri.path();
        if self.inner.authorizer.is_some() {
            let access = Access::of_request(&parts.method, path, parts.uri.query().unwrap_or_default());
            if let Err(failure) = self.authorize(&user, &access) {
                return answer::failure(&failure);
            }
        } else if user.is_anonymous() && !crate::discovery::is_public(path) {
            let message = format!("forbidden: User {:?} cannot {} path {path:?}", user.name, entry.verb);
            let details = Some(json!({}));
            return answer::failure(&Failure { details, ..Failure::new(403, "Forbidden", message) });
        }
        let Some(target) = request::target(path) else { return self.discover(parts) };
        let registry = Arc::clone(&self.state().registry);
        if registry.is_elsewhere(&target.group, &target.version) {
            return aggregation::unavailable();
        }
        let Some(definition) = registry.get(&target.group, &target.version, &target.plural) else {
            let served = registry.all().any(|definition| {
                let version = definition.version == target.version || !definition.is_custom();
                definition.group == target.group && version
            });
            if !served {
                return answer::plain(404, "404 page not found\n");
            }
            return answer::failure(&Failure::no_resource());
        };
        let call = Call {
            user,
            agent: entry.user_agent.clone(),
            definition: Arc::clone(definition),
            registry: Arc::clone(&registry),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            form: request::form(&parts.headers),
            content_type: request::text(&parts.headers, "content-type").to_owned(),
            body,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            reviewed: Reviewed::default(),
        };
        call.enter(entry, &parts.method);
        let mut notes = Notes::default();
        // Built-in kinds have no HEAD on a real API server either; where there is one, it is a GET without its body.
        let method = match &parts.method {
            &Method::HEAD if call.definition.is_custom() => &Method::GET,
            method => method,
        };
        let mut response = match self.act(method, &call, &mut notes).await {
            Ok(response) => response,
            Err(failure) => answer::failure(&failure),
        };
        answer::warn(&mut response, &notes.warnings);
        entry.annotations = notes.annotations;
        if let Some(name) = notes.name {
            entry.name = name;
        }
        response
    }

    /// Does what a method means for a target.
    async fn act(&self, method: &Method, call: &Call, notes: &mut Notes) -> Result<Response<Body>, Failure> {
        if call.definition.review {
            let review =
                if *method == Method::POST { self.review(call) } else { Err(Failure::method_not_allowed()) };
            return review.map(|review| answer::json(201, &review));
        }
        let wrong_place = call.namespace.is_empty() == call.definition.namespaced;
        let collection = call.name.is_empty();
        if wrong_place && !(call.definition.namespaced && collection && *method != Method::POST) {
            let all = call.definition.namespaced && collection;
            return Err(if all { Failure::method_not_allowed() } else { Failure::no_resource() });
        }
        let known = || call.definition.subresources().iter().any(|part| part.name == call.subresource);
        if !call.subresource.is_empty() && !known() {
            if call.definition.is("", "pods") && OF_RUNNING.contains(&call.subresource.as_str()) {
                self.find(call)?;
                return Err(Failure::not_running(&call.name, &call.subresource));
            }
            return Err(Failure::no_resource());
        }
        self.check_conversion(method, call).await?;
        if collection && call.definition.is_custom() && matches!(*method, Method::PUT | Method::PATCH) {
            return Err(Failure::bad_request("name must be provided"));
        }
        let done = match (method, collection, call.subresource.as_str()) {
            (&Method::GET, true, _) => return self.list_or_watch(call),
            (&Method::GET, false, "") if call.query.flag("watch") => return self.list_or_watch(call),
            (&Method::GET, false, _) => self.get(call),
            (&Method::POST, true, _) => self.create(call, notes).await,
            // A custom resource is created wherever it is sent.
            (&Method::POST, false, "") if call.definition.is_custom() => self.create(call, notes).await,
            (&Method::POST, false, "eviction") => self.evict(call, notes).await,
            (&Method::POST, false, "binding") => self.bind(call, notes).await,
            (&Method::PUT, false, _) => self.replace(call, notes).await,
            (&Method::PATCH, false, _) => self.patch(call, notes).await,
            (&Method::DELETE, false, "") => self.delete(call, notes).await,
            (&Method::DELETE, true, _) => return self.delete_collection(call, notes).await,
            _ => Err(Failure::method_not_allowed()),
        };
        done.map(|(code, object)| crate::table::in_form(self, call, code, object))
    }
}

/// What only Pods that run have.
const OF_RUNNING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
