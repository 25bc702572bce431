use super::Time;

#[test]
fn moments_are_written_and_read_as_kubernetes_does() {
    for text in
        ["1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2026-11-15T08:12:12Z", "2100-03-01T00:00:00Z"]
    {
        assert_eq!(Time::parse(text).map(Time::rfc3339).as_deref(), Some(text));
    }
    assert_eq!(Time::parse("2026-11-15T08:12:12.123456Z"), Time::parse("2026-11-15T08:12:12Z"));
    assert_eq!(Time::parse("1970-01-02T00:00:00Z"), Some(Time(86_400_000)));
}

#[test]
fn what_is_no_moment_is_not_read() {
    for text in
        ["", "Z", "2026-11-15", "2026-11-15T08:12:12+01:00", "2026-13-15T08:12:12Z", "äöü-11-15T08:12:12Z"]
    {
        assert_eq!(Time::parse(text), None, "{text}");
    }
}
