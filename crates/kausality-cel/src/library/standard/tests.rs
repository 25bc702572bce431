use crate::tests::{fails, holds};

#[track_caller]
fn hold(sources: &[&str]) {
    for source in sources {
        assert_eq!(holds(source), Ok(true), "{source}");
    }
}

#[test]
fn times_are_of_utc_unless_a_zone_is_named() {
    hold(&[
        "timestamp('2024-02-03T10:00:00+02:00').getHours() == 8",
        "timestamp('2024-02-03T01:00:00+02:00').getDate() == 2",
        "timestamp('2024-01-01T01:30:00+02:00').getFullYear() == 2023",
        "timestamp('2024-02-03T10:00:00+02:00').getHours('+02:00') == 10",
        "timestamp('2024-02-03T10:00:00+02:00').getHours('Local') == 8",
        "timestamp('2024-02-03T10:30:00+05:30').getMinutes() == 0",
        "duration('90m').getHours() == 1",
    ]);
}

#[test]
fn texts_are_as_go_writes_them() {
    hold(&[
        "string(timestamp('2024-02-03T10:00:00+02:00')) == '2024-02-03T10:00:00+02:00'",
        "string(timestamp('2024-02-03T10:00:00.50+00:00')) == '2024-02-03T10:00:00.5Z'",
        "string(timestamp('2024-02-03T10:00:00+02:00') + duration('1h')) == '2024-02-03T11:00:00+02:00'",
        "string(1e6) == '1e+06' && string(1234567.0) == '1.234567e+06' && string(1e21) == '1e+21'",
        "string(123456.0) == '123456' && string(0.0001) == '0.0001' && string(0.00001) == '1e-05'",
        "string(1.5) == '1.5' && string(-2.0) == '-2' && string(1e100) == '1e+100'",
        "string(double('Infinity')) == '+Inf' && string(double('-inf')) == '-Inf'",
        "string(duration('1h30m')) == '5400s' && string(duration('-1.5s')) == '-1.5s'",
    ]);
}

#[test]
fn numbers_are_read_as_go_reads_them() {
    hold(&[
        "double('1e3') == 1000.0 && double('-.5') == -0.5 && double('1.') == 1.0",
        "int(duration('1s')) == 1000000000 && int(duration('-1ns')) == -1",
        "bool('T') && !bool('F') && bool('1')",
        "uint('1') == 1u && int('+1') == 1 && int('-1') == -1",
    ]);
    for source in [
        "double('1e400') == 1.0",
        "double(string(dyn('-1e400'))) == 1.0",
        "double('+nan') == 1.0",
        "double('x') == 1.0",
        "uint('+1') == 1u",
        "uint(dyn('-0')) == 0u",
        "bool('yes')",
    ] {
        fails(source);
    }
}

#[test]
fn durations_are_read_as_go_reads_them() {
    hold(&[
        "duration('1\u{b5}s') == duration('1us') && duration('1\u{3bc}s') == duration('1000ns')",
        "duration('0') == duration('0s') && duration('+1h1m') == duration('61m')",
        "duration('1.5h') == duration('90m') && duration('.5s') == duration('500ms')",
        "duration('1.s') == duration('1s') && duration('-1h1m') == duration('0s') - duration('61m')",
        "int(duration('9223372036854775807ns')) == 9223372036854775807",
        "int(duration('-9223372036854775808ns')) + 9223372036854775807 == -1",
        "int(duration('2540400h10m10.999999999s')) == 9145440610999999999",
        "int(duration('0.1234567899s')) == 123456789",
    ]);
    for text in [
        "1h-1m",
        "1h 1m",
        "",
        "-",
        "1",
        "s",
        ".s",
        "1e3s",
        "1H",
        "1d",
        "h1",
        "9223372036854775808ns",
        "2562048h",
    ] {
        fails(&format!("duration('{text}') == duration('1s')"));
        fails(&format!("duration(dyn('{text}')) == duration('1s')"));
    }
}

#[test]
fn timestamps_are_read_as_go_reads_them() {
    hold(&["timestamp('2024-02-03T10:00:00,5Z') == timestamp('2024-02-03T10:00:00.5Z')"]);
    for text in [
        "2024-02-03 10:00:00Z",
        "2024-02-03t10:00:00Z",
        "2024-02-03T10:00:00z",
        "2024-02-03T10:00:60Z",
        "2024-02-03T10:00:00",
        "2024-02-30T10:00:00Z",
        "2024-02-03",
        "",
    ] {
        fails(&format!("timestamp('{text}') == timestamp(0)"));
        fails(&format!("timestamp(dyn('{text}')) == timestamp(0)"));
    }
}
