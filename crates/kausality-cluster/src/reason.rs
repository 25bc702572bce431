//! Why calls of an API server fail, in a few words.

use std::{
    error::Error,
    io::{self, ErrorKind},
};

/// Why a call failed: in the API server's own words if it said any, or by what is behind all else. What lies between,
/// layer by layer, tells people nothing.
#[must_use]
pub fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => innermost(error),
        error => error.to_string(),
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let ended = error.downcast_ref::<io::Error>().map(io::Error::kind);
    if ended == Some(ErrorKind::UnexpectedEof) {
        return "the connection was cut off".to_owned();
    }
    match error.source() {
        Some(cause) => innermost(cause),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error that does not quote what is behind it.
    #[derive(Debug, thiserror::Error)]
    #[error("something went wrong")]
    struct Hidden(#[source] io::Error);

    #[test]
    fn a_failure_is_told_in_the_words_that_say_most() {
        let behind = |error: io::Error| kube::Error::Service(Box::new(error));
        let refused = io::Error::new(ErrorKind::ConnectionRefused, "nobody listens there");
        assert_eq!(reason(&behind(refused)), "nobody listens there");
        let wrapped = io::Error::other(Hidden(io::Error::other("nobody knows the host")));
        assert_eq!(reason(&behind(wrapped)), "nobody knows the host");
        let cut = Hidden(io::Error::new(ErrorKind::UnexpectedEof, "a long story about protocols"));
        assert_eq!(reason(&kube::Error::Service(Box::new(cut))), "the connection was cut off");
        let status = kube::core::Status::failure("drifts is forbidden", "Forbidden").with_code(403);
        assert_eq!(reason(&kube::Error::Api(Box::new(status))), "drifts is forbidden");
        let unread = serde_json::from_str::<u8>("x").unwrap_err();
        let told = reason(&kube::Error::SerdeError(unread));
        assert!(told.starts_with("Error deserializing response: expected value"), "{told}");
    }
}
