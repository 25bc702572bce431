use super::*;

fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
}

#[test]
fn only_what_says_it_is_something_else_than_json_is_refused() {
    check_encoding(&HeaderMap::new()).unwrap();
    for content in ["application/json", "application/json; charset=UTF-8", "text/plain", "nonsense"] {
        check_encoding(&headers(header::CONTENT_TYPE, content)).unwrap();
    }
    for content in ["application/vnd.kubernetes.protobuf", "application/YAML"] {
        check_encoding(&headers(header::CONTENT_TYPE, content)).unwrap_err();
    }
    check_encoding(&headers(header::CONTENT_ENCODING, "identity")).unwrap();
    check_encoding(&headers(header::CONTENT_ENCODING, "gzip")).unwrap_err();
}

#[test]
fn failures_have_a_status_that_is_no_decision_and_a_bounded_text() {
    let check = |failure: Failure, expected: u16| {
        let response = failure.into_response();
        assert_eq!(response.status(), expected);
        assert_eq!(response.headers().contains_key(header::RETRY_AFTER), expected == 503);
    };
    check(Failure::Encoding("x".repeat(10_000)), 415);
    check(Failure::Refused(Refused::TooLarge { limit: 1 }), 413);
    check(Failure::Refused(Refused::Busy), 503);
    check(Failure::Refused(Refused::Broken(axum::Error::new("gone"))), 400);
    check(Failure::Bad(BadReview::NoRequest), 400);
    check(Failure::Late(Duration::from_secs(8)), 504);
    check(Failure::Crowded(Duration::from_secs(8)), 503);
    check(Failure::Panicked, 500);
}
