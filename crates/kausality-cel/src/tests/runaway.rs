//! Expressions that would take for ever, or the stack, or the memory: each is an error.

use super::*;

/// What is refused before it is evaluated.
fn refused(environment: &Environment) -> Vec<String> {
    let limit = environment.limits().source;
    let fit = |part: &str| part.repeat(limit / part.len() - 8);
    let brackets = |open: &str, close: &str| format!("{}true{}", open.repeat(2_000), close.repeat(2_000));
    vec![
        "1+".repeat(20_000) + "1 == 1",
        fit("1+") + "1 == 1",
        fit("1-") + "1 == 1",
        brackets("(", ")"),
        brackets("[", "]"),
        brackets("{1:", "}"),
        "(".repeat(limit - 1),
        fit("(("),
        fit("-") + "1 == 1",
        fit("- ") + "1 == 1",
        fit("true?true:") + "true",
        format!("object{} == 1", fit(".a")),
        format!("object{} == 1", fit("[0]")),
        format!("{}object == 1", fit("object.f(")),
        format!("{}[1]{} == 1", "[1].map(a,".repeat(200), ")".repeat(200)),
        format!("'{}' == ''", "x".repeat(limit)),
        format!("'a'.matches('{}a{}')", "(".repeat(300), "){100}".repeat(300)),
        "'a'.matches('(((a{1000}){1000}){1000})')".to_owned(),
        "'a'.find('(((a{1000}){1000}){1000})') == ''".to_owned(),
        r"'a'.matches('(?i)[a-\\x{10FFFF}][b-\\x{10FFFF}]')".to_owned(),
        format!("'a'.matches('(?i){}')", r"[\\PLb]".repeat(100)),
        format!("'a'.matches('{}')", r"[\\pL\\pN]".repeat(limit / 16)),
        (0..100).map(|nth| format!(r"'x'.matches('\\pL{{20}}{nth}')")).collect::<Vec<_>>().join("||"),
    ]
}

/// What is stopped while it is evaluated. `object` is a list of 1,000 numbers, `oldObject` a text of 100,000 letters.
const STOPPED: &[&str] = &[
    "object.exists(a, object.exists(b, object.exists(c, a + b + c < 0)))",
    "object.exists(a, object.exists(b, object.exists(c, false))) || true",
    "true || object.exists(a, object.exists(b, object.exists(c, false)))",
    "object.all(a, object.all(b, object.all(c, object.all(d, true))))",
    "object.map(a, object.map(b, object.map(c, object))).size() == 0",
    "object.map(a, object).map(b, object).map(c, object.map(d, oldObject)).size() == 0",
    "object.map(a, oldObject + oldObject).size() == 0",
    "object.filter(a, object.filter(b, object.filter(c, true).size() > 0).size() > 0).size() > 0",
    "object.exists_one(a, object.exists_one(b, object.exists_one(c, false)))",
    "object.all(i, a, object.all(j, b, object.all(k, c, true)))",
    "object.transformList(i, a, object.transformList(j, b, object)).size() == 0",
    "object.transformMap(i, a, object.transformMap(j, b, object)).size() == 0",
    "object.all(a, oldObject.replace('x', oldObject) != '')",
    "oldObject.replace('x', oldObject).replace('x', oldObject) == ''",
    "object.map(a, oldObject).join(oldObject) == ''",
    "object.map(a, string(a)).join(oldObject + oldObject + oldObject) == ''",
    "object.all(a, oldObject.split('').size() > 0)",
    "object.all(a, object == object)",
    "object.all(a, oldObject.indexOf(oldObject + 'y') < 0)",
    "object.all(a, oldObject.lowerAscii() != '')",
    "object.all(a, oldObject.contains(oldObject + 'y') == false)",
    "object.all(a, !oldObject.matches('(x+x+)+y'))",
    "object.all(a, !oldObject.matches('(.*){10}y'))",
    "object.all(a, !oldObject.matches('x(x|y){200}z'))",
    "object.all(a, !oldObject.matches('(x+x+)+' + string(a)))",
    "object.all(a, !'x'.matches('(x{50}){20}' + string(a)))",
    r"object.all(a, !oldObject.substring(0, 700).matches('\\pL{20}z'))",
    r"object.exists(a, 'x'.matches('((\\pL{50}){10}' + string(a) + ')'))",
    r"object.exists(a, 'x'.matches('\\pL{30}' + string(a)))",
    r"object.exists(a, 'x'.matches('\\pL{5}' + string(a)))",
    "object.exists(a, 'x'.matches('(a{1000}){1000}' + string(a)))",
    r"object.exists(a, 'x'.matches('(?i)[a-\\x{10FFFF}]' + string(a)))",
    r"object.exists(a, 'x'.matches('(?i)\\pL' + string(a)))",
    "object.all(a, object.map(b, object).size() > 0)",
    "object.all(a, '%s%s%s'.format([oldObject, oldObject, oldObject]) != '')",
    "object.all(a, [oldObject].map(b, {'a': b, 'b': b}) != [])",
    "object.all(a, object in [object, object])",
    "object.all(a, [object, object, object].exists(b, b == object))",
    "object.all(a, optional.of(object).hasValue())",
];

fn large() -> Known {
    Known::new(json!({"object": (0..1000).collect::<Vec<_>>(), "oldObject": "x".repeat(100_000)}))
}

#[test]
fn what_is_too_large_is_refused() {
    for environment in [Environment::conditions(), Environment::policies()] {
        for source in refused(environment) {
            let compiled = Expression::compile(&source, environment);
            let fault = compiled.err().unwrap_or_else(|| panic!("{} bytes: {:.60}", source.len(), source));
            assert!(fault.to_string().len() < 1000, "{fault}");
        }
    }
}

#[test]
fn what_takes_too_long_is_stopped() {
    let known = large();
    for environment in [Environment::conditions(), Environment::policies()] {
        for source in STOPPED.iter().filter(|it| !it.starts_with("true ||")) {
            let expression =
                Expression::compile(source, environment).unwrap_or_else(|it| panic!("{source}: {it}"));
            let failure = expression.holds(&known).err().unwrap_or_else(|| panic!("{source}"));
            assert!(failure.to_string().contains("cost limit exceeded"), "{source}: {failure}");
        }
    }
    assert_eq!(compile(STOPPED[2]).holds(&known), Ok(true), "what is not needed is not evaluated");
}

/// Just below the limits, an expression is evaluated, on the stack that any thread has.
#[test]
fn what_is_large_and_within_the_limits_is_evaluated() {
    let environment = Environment::conditions();
    let Limits { source, depth, .. } = environment.limits();
    let holds = |source: &str| {
        let expression = Expression::compile(source, environment);
        expression.unwrap_or_else(|error| panic!("{:.60}: {error}", source)).holds(&known())
    };
    assert_eq!(holds(&format!("object{} == 1 || true", ".a".repeat(depth - 3))), Ok(true));
    assert_eq!(holds(&format!("{}1 == {}", "1+".repeat(depth - 2), depth - 1)), Ok(true));
    assert_eq!(holds(&format!("{}true{}", "(".repeat(depth / 3), ")".repeat(depth / 3))), Ok(true));
    assert_eq!(holds(&format!("{}true", "!".repeat(depth / 2 * 2))), Ok(true));
    assert_eq!(holds(&format!("{}true", "false?true:".repeat(depth / 3))), Ok(true));
    let loops = depth / 5;
    assert_eq!(holds(&format!("{}true{}", "[1].all(a,".repeat(loops), ")".repeat(loops))), Ok(true));
    assert_eq!(holds("'a'.matches('^.{1,1000}$') && 'a'.matches('^[a-z0-9.-]{1,253}$')"), Ok(true));
    let wide = vec!["request.operation == 'CREATE'"; 400].join(" && ");
    assert!(wide.len() < source);
    assert_eq!(holds(&wide), Ok(true));
}

/// `cargo test -p kausality-cel --release -- --ignored --nocapture times`
#[test]
#[ignore = "times are for people"]
#[allow(clippy::print_stdout, reason = "times are for people")]
fn times() {
    let mut slowest = Vec::new();
    let known = large();
    _ = compile("object == oldObject").holds(&known);
    for environment in [Environment::conditions(), Environment::policies()] {
        for source in refused(environment) {
            let start = std::time::Instant::now();
            _ = Expression::compile(&source, environment);
            slowest.push((start.elapsed(), format!("refused {:.90}", source)));
        }
        for source in STOPPED {
            let start = std::time::Instant::now();
            let expression = Expression::compile(source, environment).unwrap();
            slowest.push((start.elapsed(), format!("compiled {source}")));
            let start = std::time::Instant::now();
            _ = expression.holds(&known);
            slowest.push((start.elapsed(), format!("stopped {} {source}", environment.limits().cost)));
        }
    }
    slowest.sort();
    for (time, what) in slowest.iter().rev().take(60) {
        println!("{time:>12.1?} {what}");
    }
}

/// What cannot be made costs as much as it may have taken, and nothing is made that cannot be paid for.
#[test]
fn patterns_are_paid_for() {
    let known = known();
    let cost = |pattern: &str, left: u64| {
        let left = Cell::new(left);
        let source = format!("'x'.matches('{pattern}' + object.metadata.name) || true");
        let held =
            Expression::compile(&source, Environment::conditions()).unwrap().holds_within(&known, &left);
        (held, left.get())
    };
    let (held, left) = cost("a", 400_000);
    assert_eq!(held, Ok(true));
    assert!(left > 398_000, "{left}");
    for large in ["(a{1000}){1000}", r"((\\pL{50}){10})", r"(?i)[a-\\x{10FFFF}]"] {
        let (held, left) = cost(large, 400_000);
        assert_eq!(held, Ok(true), "{large}");
        assert!(left < 140_000, "{large}: {left}");
        assert_eq!(cost(large, 200_000), (Err(Failure::too_expensive()), 0), "{large}");
    }
    // What is no pattern took no more than to read it.
    let (_, left) = cost("((", 400_000);
    assert!(left > 398_000, "{left}");
}

#[test]
fn expressions_share_what_they_may_do() {
    let known = known();
    let dear =
        compile("object.metadata.name == 'web' && [1, 2, 3, 4].all(a, [1, 2, 3, 4].all(b, a + b > 0))");
    let left = Cell::new(10_000);
    assert_eq!(dear.holds_within(&known, &left), Ok(true));
    let cost = 10_000 - left.get();
    assert!(cost > 16, "{cost}");
    left.set(2 * cost + 1);
    assert_eq!(dear.holds_within(&known, &left), Ok(true));
    assert_eq!(dear.holds_within(&known, &left), Ok(true));
    assert_eq!(dear.holds_within(&known, &left), Err(Failure::too_expensive()));
    assert_eq!(left.get(), 0);
    assert_eq!(compile("true").holds_within(&known, &left), Err(Failure::too_expensive()));
}
