use std::path::Path;

use super::names::Names;
use super::{SourceFile, violations_in};

/// What is said about the library of a pure crate, as `line: what`.
fn check(code: &str) -> Vec<String> {
    let found = check_files(&[("pure", code)]);
    found.iter().filter_map(|said| said.strip_prefix("pure:")).map(str::to_owned).collect()
}

/// The same for several modules (`crate::module`), as `module:line: what`.
fn check_files(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files
        .iter()
        .map(|(module, code)| SourceFile {
            path: Path::new(module).to_path_buf(),
            module: module.split("::").map(str::to_owned).collect(),
            ast: syn::parse_file(code).expect("valid Rust"),
        })
        .collect();
    violations_in(Names::default(), &files, |path| path.display().to_string())
        .into_iter()
        .map(|violation| format!("{}: {}", violation.place, violation.what))
        .collect()
}

/// Asserts that each expression, alone in a function, is found to do what `what` says.
#[track_caller]
fn each(what: &str, expressions: &[&str]) {
    for expression in expressions {
        let found = check(&format!("fn f() {{\n{expression};\n}}"));
        assert!(
            found.iter().any(|said| said.starts_with("2: ") && said.ends_with(what)),
            "`{expression}` {what}, but the check says {found:?}"
        );
    }
}

#[test]
fn clocks_are_found() {
    each(
        "reads a clock",
        &[
            "std::time::SystemTime::now()",
            "::std::time::Instant::now()",
            "core::time::Instant::now()",
            "let t = std::time::UNIX_EPOCH",
            "let f: fn() -> jiff::Timestamp = jiff::Timestamp::now",
            "x.unwrap_or_else(jiff::Timestamp::now)",
            "jiff::Zoned::now()",
            "<jiff::Timestamp>::now()",
            "let x: Option<std::time::SystemTime> = None",
            "chrono::Utc::now()",
        ],
    );
}

#[test]
fn the_environment_is_found() {
    each(
        "reads the environment",
        &[
            "std::env::var(\"HOME\")",
            "std::env::args()",
            "env!(\"HOME\")",
            "option_env!(\"HOME\")",
            "std::env!(\"CARGO_MANIFEST_DIR\")",
            "jiff::tz::TimeZone::system()",
            "std::backtrace::Backtrace::capture()",
        ],
    );
}

#[test]
fn randomness_is_found() {
    each(
        "draws random numbers",
        &[
            "rand::random::<u8>()",
            "getrandom::fill(&mut b)",
            "fastrand::u8(..)",
            "std::hash::RandomState::new()",
        ],
    );
}

#[test]
fn maps_in_random_order_are_found() {
    each(
        "iterates in a random order",
        &[
            "std::collections::HashMap::<u8, u8>::new()",
            "let m: std::collections::HashMap<u8, u8> = x",
            "x.collect::<std::collections::HashSet<_>>()",
            "std::collections::hash_map::HashMap::from([(1, 2)])",
            "vec![std::collections::HashSet::<u8>::with_capacity(3)]",
            "use std::collections::HashMap as Map; Map::default()",
        ],
    );
}

#[test]
fn io_is_found() {
    each(
        "does I/O",
        &[
            "std::fs::read(\"a\")",
            "std::net::TcpStream::connect(a)",
            "std::process::Command::new(\"ls\")",
            "std::process::exit(1)",
            "std::io::stdin()",
            "std::io::stdout().flush()",
            "println!(\"a\")",
            "std::eprintln!(\"a\")",
            "print!(\"a\")",
            "eprint!(\"a\")",
            "dbg!(1)",
            "std::path::Path::new(\"a\").exists()",
        ],
    );
    each("uses threads", &["std::thread::sleep(d)", "std::thread::spawn(|| 1)"]);
}

#[test]
fn imports_are_followed() {
    assert_eq!(
        check("use std::time::SystemTime as Clock;\nfn f() -> u8 {\n    Clock::now()\n}"),
        [
            "1: `std::time::SystemTime` reads a clock",
            "3: `Clock::now` (std::time::SystemTime::now) reads a clock",
        ]
    );
    assert_eq!(
        check("use std::{\n    env,\n    time::*,\n};\nfn f() { env::var(\"A\"); Instant::now(); }"),
        [
            "2: `std::env` reads the environment",
            "5: `Instant::now` (std::time::Instant::now) reads a clock",
            "5: `env::var` (std::env::var) reads the environment",
        ]
    );
    assert_eq!(
        check("use jiff::{self as j, Timestamp as T};\nfn f() { T::now(); j::Zoned::now(); }"),
        [
            "2: `T::now` (jiff::Timestamp::now) reads a clock",
            "2: `j::Zoned::now` (jiff::Zoned::now) reads a clock",
        ]
    );
    assert_eq!(check("use std::env::*;\nfn f() { Vec::new(); }"), ["1: `std::env` reads the environment"]);
    assert_eq!(
        check("use std as s;\nuse s::time;\nfn f() { use time::Instant as I; I::now(); }")
            .last()
            .expect("one"),
        "3: `time::Instant` (std::time::Instant) reads a clock"
    );
    assert_eq!(
        check("extern crate std as s;\nfn f() { s::fs::read(x); }"),
        ["2: `s::fs::read` (std::fs::read) does I/O"]
    );
    assert_eq!(check("use std::println as say;\nfn f() { say!(); }"), ["2: `println!` does I/O"]);
}

#[test]
fn aliases_and_self_are_followed() {
    assert_eq!(
        check("type Clock = jiff::Timestamp;\nfn f() { Clock::now(); }"),
        ["2: `Clock::now` (jiff::Timestamp::now) reads a clock"]
    );
    assert_eq!(
        check("use jiff::Timestamp;\nimpl Time for Timestamp {\n    fn get() -> Self { Self::now() }\n}"),
        ["3: `Timestamp::now` (jiff::Timestamp::now) reads a clock"]
    );
}

#[test]
fn other_modules_and_crates_pass_nothing_on() {
    assert_eq!(
        check_files(&[
            ("pure::time", "pub use jiff::Timestamp as Moment;"),
            ("pure::user", "use super::time::*;\nfn f() { Moment::now(); crate::time::Moment::now(); }"),
            ("pure", "mod time; mod user; pub use time::Moment;"),
            ("other", "fn f() { pure::Moment::now(); }"),
        ]),
        [
            "other:1: `pure::Moment::now` (jiff::Timestamp::now) reads a clock",
            "pure::user:2: `Moment::now` (jiff::Timestamp::now) reads a clock",
            "pure::user:2: `crate::time::Moment::now` (jiff::Timestamp::now) reads a clock",
        ]
    );
}

#[test]
fn renamed_dependencies_are_followed() {
    let ast = syn::parse_file("fn f() { clock::Timestamp::now(); }").expect("valid Rust");
    let file = SourceFile { path: "lib.rs".into(), module: vec!["pure".to_owned()], ast };
    let mut names = Names::default();
    names.rename("pure", "clock", "jiff");
    assert_eq!(violations_in(names, &[file], |_| String::new()).len(), 1);
}

#[test]
fn macros_hide_nothing() {
    let found = "`std::time::SystemTime::now` reads a clock";
    for code in [
        "fn f() { format!(\"{:?}\", std::time::SystemTime::now()); }",
        "fn f() { json!({ \"now\": std::time::SystemTime::now() }); }",
        "fn f() { assert!(matches!(x, Some(t) if t == std::time::SystemTime::now())); }",
        "macro_rules! now { ($x:expr) => { $x - std::time::SystemTime::now() }; }",
        "#[derive(Deserialize)] struct S { #[serde(default = \"std::time::SystemTime::now\")] a: u8 }",
    ] {
        assert_eq!(check(code), [format!("1: {found}")], "{code}");
    }
    assert_eq!(
        check("use jiff::Timestamp as T;\nfn f() { json!({ \"now\": T::now() }); }"),
        ["2: `T::now` (jiff::Timestamp::now) reads a clock"]
    );
    assert_eq!(check("macro_rules! m { () => { println!(\"a\") }; }"), ["1: `println!` does I/O"]);
    assert_eq!(
        check("fn f() { json!({ \"a\": env!(\"HOME\") }); }"),
        ["1: `env!(\"HOME\")` reads the environment"]
    );
}

#[test]
fn clean_code_passes() {
    let code = r#"
        //! Never calls std::time::SystemTime::now().
        use std::collections::{BTreeMap, HashMap, hash_map};
        use std::net::IpAddr;
        use std::time::{Duration, *};
        use jiff::Timestamp;

        /// Not `println!`: `std::env::var("HOME")`.
        const NAME: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
        // rand::random()
        const TEXT: &str = "std::fs::read, Instant::now()";
        #[doc = "std::process::exit(1)"]
        struct Fixed;
        type Map<K, V> = HashMap<K, V, Fixed>;
        struct Instant;
        mod env { pub fn var() {} pub(crate) mod fs { pub fn read() {} } }
        mod rand { pub fn random() -> u8 { 4 } }

        fn f(now: Timestamp, ip: IpAddr) -> String {
            let map: HashMap<u8, u8, Fixed> = HashMap::with_hasher(Fixed);
            let other = Map::<u8, u8>::default();
            let limit: Duration = Duration::from_secs(1);
            env::var();
            env::fs::read();
            rand::random();
            Instant::now();
            self.env.process.exit(1);
            let thread = "std::thread::sleep";
            format!("{now} {TEXT} std::env::var {}", json!({ "println!": now.env, "fs": "std::fs" }))
        }
    "#;
    assert_eq!(check(code), [] as [&str; 0]);
}

#[test]
fn code_for_tests_is_left_alone() {
    let code = r#"
        #[cfg(test)]
        use std::time::Instant;
        #[cfg(test)]
        mod tests { fn f() { std::env::var("A"); } }
        #[cfg(all(test, unix))]
        mod more { fn f() { println!(); } }
        #[test]
        fn t() { std::thread::sleep(x); }
        #[cfg(test)]
        fn helper() { println!(); }
        impl A {
            #[cfg(test)]
            fn helper() { println!(); }
        }
        fn f() {
            #[cfg(test)]
            println!();
            match x {
                #[cfg(test)]
                1 => println!(),
                _ => {}
            }
        }
        struct S {
            #[cfg(test)]
            started: std::time::Instant,
        }
    "#;
    assert_eq!(check(code), [] as [&str; 0]);
}

#[test]
fn code_that_is_not_only_for_tests_is_not() {
    for cfg in ["not(test)", "any(test, feature = \"x\")", "feature = \"test\"", "unix", "any()"] {
        assert_eq!(
            check(&format!("#[cfg({cfg})] fn f() {{ println!(); }}")),
            ["1: `println!` does I/O"],
            "{cfg}"
        );
    }
    assert_eq!(check("#[cfg_attr(test, allow(x))] fn f() { println!(); }"), ["1: `println!` does I/O"]);
}
