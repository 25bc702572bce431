//! What the tests of all libraries have in common: expressions that are compiled and evaluated.

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Value};

use super::{Kind, register, signatures};

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    register(&mut environment).expect("nothing is there twice");
    Arc::new(environment)
});

pub(super) fn evaluate(source: &str) -> Result<Value, String> {
    let program = ENVIRONMENT.compile(source).map_err(|errors| errors.to_string())?;
    program.execute(&Context::with_env(Arc::clone(&ENVIRONMENT))).map_err(|error| error.to_string())
}

/// Each of them is true.
#[track_caller]
pub(super) fn hold(sources: &[&str]) {
    let wrong = sources.iter().map(|source| (source, evaluate(source)));
    let wrong: Vec<_> = wrong.filter(|(_, result)| *result != Ok(Value::Bool(true))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each of them cannot be evaluated, for a reason in which these words are.
#[track_caller]
pub(super) fn fail(cases: &[(&str, &str)]) {
    let wrong = cases.iter().map(|(source, words)| (source, words, evaluate(source)));
    let wrong =
        wrong.filter(|(_, words, result)| !result.as_ref().is_err_and(|error| error.contains(**words)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn types_have_names() {
    hold(&[
        "type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR && type(ip('::1')) != net.CIDR",
        "type(quantity('1')) == type(quantity('2')) && type(quantity('1')) != type(url('/'))",
    ]);
    fail(&[("type(quantity('1')) == kubernetes.Quantity", "kubernetes")]);
}

#[test]
fn types_are_not_mixed_up() {
    fail(&[
        ("isIP(cidr('192.168.0.0/24'))", "no matching overload for 'isIP'"),
        ("isQuantity([1, 2, 3])", "no matching overload for 'isQuantity'"),
        ("isSemver([1, 2, 3])", "no matching overload for 'isSemver'"),
        ("semver('1.2.3').isLessThan(quantity('1'))", "no matching overload for 'isLessThan'"),
        ("quantity('1') < quantity('2')", "no matching overload for '_<_'"),
        ("string(quantity('1'))", "no matching overload for 'string'"),
    ]);
}

/// The functions of texts are there along with those of lists that have the same names.
#[test]
fn texts_have_their_functions() {
    hold(&[
        "'hello'.indexOf('l') == 2 && [1, 2].indexOf(2) == 1",
        "'hello'.lastIndexOf('l') == 3",
        "'hello'.charAt(1) == 'e'",
        "['a', 'b'].join('-') == 'a-b'",
        "'TacoCat'.lowerAscii() == 'tacocat' && 'TacoCat'.upperAscii() == 'TACOCAT'",
        "'a-b'.split('-') == ['a', 'b'] && ' a '.trim() == 'a'",
        "'hello'.replace('l', 'L', 1) == 'heLlo' && 'hello'.substring(1, 3) == 'el'",
        "strings.quote('a\\nb') == '\"a\\\\nb\"'",
    ]);
}

#[test]
fn signatures_say_what_lists_are_of() {
    let sums = signatures().filter(|it| it.name == "sum" && it.member).map(|it| (it.arguments, it.result));
    let expected: [(&[Kind], Kind); 4] = [
        (&[Kind::List(&Kind::Int)], Kind::Int),
        (&[Kind::List(&Kind::Uint)], Kind::Uint),
        (&[Kind::List(&Kind::Double)], Kind::Double),
        (&[Kind::List(&Kind::Duration)], Kind::Duration),
    ];
    assert_eq!(sums.collect::<Vec<_>>(), expected);
    assert!(signatures().all(|it| !it.member || !it.arguments.is_empty()), "a target is missing");
}

/// Whatever the type checker lets pass is there when it is evaluated.
#[test]
fn every_signature_is_registered() {
    for signature in signatures() {
        let values: Vec<&str> = signature.arguments.iter().map(|kind| example(*kind)).collect();
        let call = match (signature.member, values.split_first()) {
            (true, Some((target, rest))) => format!("{target}.{}({})", signature.name, rest.join(", ")),
            _ => format!("{}({})", signature.name, values.join(", ")),
        };
        if signature.name.starts_with('@') {
            continue;
        }
        let result = evaluate(&call);
        let unknown = ["no matching overload", "Undeclared", "ERROR"];
        let known = result.as_ref().err().is_none_or(|error| !unknown.iter().any(|it| error.contains(it)));
        assert!(known, "{call}: {result:?}");
    }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Int => "1",
        Kind::Bool => "true",
        Kind::Bytes => "b'a'",
        Kind::Double => "1.5",
        Kind::Duration => "duration('1s')",
        Kind::List(Kind::Optional(_)) => "[optional.of(1)]",
        Kind::List(Kind::Map(..)) => "[{1: 2}]",
        Kind::List(Kind::String) => "['a']",
        Kind::List(_) => "[1]",
        Kind::Map(..) => "{1: 2}",
        Kind::Opaque("kubernetes.Quantity") => "quantity('1')",
        Kind::Opaque("kubernetes.Semver") => "semver('1.2.3')",
        Kind::Opaque("kubernetes.URL") => "url('/')",
        Kind::Opaque("net.IP") => "ip('::1')",
        Kind::Opaque("net.CIDR") => "cidr('::/0')",
        Kind::Opaque(_) => "format.uri()",
        Kind::Optional(_) => "optional.of(1)",
        Kind::String => "'1.2.3.4'",
        Kind::Timestamp => "timestamp('2026-01-01T00:00:00Z')",
        Kind::Uint => "1u",
    }
}

#[test]
fn nothing_is_registered_twice() {
    let mut environment = Env::stdlib();
    assert_eq!(register(&mut environment), Ok(()));
    assert!(register(&mut environment).is_err());
}
