//! Who asks: tokens, impersonation, and what a user is called.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde::Serialize;

use crate::request::text;
use crate::status::Failure;

/// A user, as admission reviews name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct User {
    /// `alice`, `system:serviceaccount:kube-system:deployment-controller`.
    #[serde(rename = "username")]
    pub name: String,
    /// Empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group of those who may do all.
pub const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const ANONYMOUS: &str = "system:anonymous";

impl User {
    /// A user of some groups. A service account is also in those of all service accounts, and everybody is in
    /// `system:authenticated`.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut all: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        if let Some((namespace, _)) =
            name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
        {
            all.push("system:serviceaccounts".to_owned());
            all.push(format!("system:serviceaccounts:{namespace}"));
        }
        if !all.iter().any(|group| group == AUTHENTICATED) {
            all.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), groups: all, ..Self::default() }
    }

    /// Somebody who may do all.
    pub fn admin(name: &str) -> Self {
        Self::new(name, &[MASTERS])
    }

    pub(crate) fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }
}

/// Who a request is from, by its token.
pub(crate) fn authenticate(headers: &HeaderMap, tokens: &BTreeMap<String, User>) -> Result<User, Failure> {
    let authorization = text(headers, "authorization");
    if authorization.is_empty() {
        return Ok(User::anonymous());
    }
    let token = authorization.strip_prefix("Bearer ").map(str::trim);
    token.and_then(|token| tokens.get(token)).cloned().ok_or_else(Failure::unauthorized)
}

/// Whom the user acts as.
pub(crate) fn impersonate(headers: &HeaderMap, user: User) -> Result<User, Failure> {
    let name = text(headers, "impersonate-user");
    let values = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let groups = values("impersonate-group");
    if name.is_empty() {
        if !groups.is_empty() {
            return Err(Failure::bad_request("requested groups [...] without impersonating a user"));
        }
        return Ok(user);
    }
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut user = User::new(name, &groups);
    user.uid = text(headers, "impersonate-uid").to_owned();
    for (key, value) in headers {
        if let (Some(key), Ok(value)) = (key.as_str().strip_prefix("impersonate-extra-"), value.to_str()) {
            user.extra.entry(key.to_owned()).or_default().push(value.to_owned());
        }
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn service_accounts_are_in_the_groups_of_their_namespace() {
        let user = User::new("system:serviceaccount:a:b", &[]);
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
    }

    #[test]
    fn a_token_that_nobody_knows_is_refused() {
        let tokens = BTreeMap::from([("t".to_owned(), User::admin("a"))]);
        let mut headers = HeaderMap::new();
        assert!(authenticate(&headers, &tokens).unwrap().is_anonymous());
        headers.insert("authorization", HeaderValue::from_static("Bearer t"));
        assert_eq!(authenticate(&headers, &tokens).unwrap().name, "a");
        headers.insert("impersonate-user", HeaderValue::from_static("bob"));
        headers.insert("impersonate-group", HeaderValue::from_static("dev"));
        let bob = impersonate(&headers, User::admin("a")).unwrap();
        assert_eq!((bob.name.as_str(), bob.groups[0].as_str()), ("bob", "dev"));
        headers.insert("authorization", HeaderValue::from_static("Bearer x"));
        assert_eq!(authenticate(&headers, &tokens).unwrap_err().code, 401);
    }
}
