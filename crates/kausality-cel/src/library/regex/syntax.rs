//! Go's syntax of regular expressions, in Rust's.
//!
//! Both crates descend from RE2 and match alike. What is written differently is rewritten: `\d`, `\w`, `\s` and `\b`
//! are of ASCII in Go; a `[`, `&&`, `--` or `~~` within a class is nothing special there; and `\Q…\E` quotes. What Rust
//! knows and Go does not (`(?x)`, `\u`, `a**`) is refused.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// The letters that may stand behind `(?`.
const FLAGS: &[char] = &['i', 'm', 's', 'U', '-'];
/// The classes that are written as `[:name:]`.
const POSIX: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// What a class by name takes to be read, in bytes of a compiled expression that take as long.
const NAMED: usize = 1 << 10;
/// The same where case is ignored, and where it is of all characters.
const FOLDED: usize = 16 << 10;
const FOLDED_ALL: usize = char::MAX as usize;

/// An expression as Rust writes it, and what it takes to read it.
pub(super) fn translated(pattern: &str) -> Result<(String, usize), String> {
    let written = String::with_capacity(pattern.len());
    Translation { rest: pattern.chars().peekable(), written, named: 0, folds: false, folded: 0 }.run()
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    written: String,
    /// The classes by name.
    named: usize,
    /// Whether case is ignored anywhere: each character of each class is then looked up.
    folds: bool,
    /// What that takes.
    folded: usize,
}

impl Translation<'_> {
    fn run(mut self) -> Result<(String, usize), String> {
        while let Some(letter) = self.rest.next() {
            match letter {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' => self.repetition(letter)?,
                '{' if self.is_count() => self.count()?,
                // In Go, braces that hold no count are literals.
                '{' | '}' => self.literal(letter),
                '#' | ' ' | '&' | '~' | '-' => self.literal(letter),
                letter => self.written.push(letter),
            }
        }
        Ok((self.written, self.named * NAMED + if self.folds { self.folded } else { 0 }))
    }

    /// A character that stands for itself, wherever it is.
    fn literal(&mut self, letter: char) {
        if letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii() {
            self.written.push(letter);
        } else {
            // Of a String, this cannot fail.
            _ = write!(self.written, "\\x{{{:X}}}", u32::from(letter));
        }
    }

    /// Behind a backslash, outside of classes.
    fn escape(&mut self) -> Result<(), String> {
        match self.rest.peek() {
            Some('b') => self.written.push_str(r"(?-u:\b)"),
            Some('B') => self.written.push_str(r"(?-u:\B)"),
            Some('A') => self.written.push_str(r"\A"),
            Some('z') => self.written.push_str(r"\z"),
            Some('Q') => {
                self.rest.next();
                self.quoted();
                return Ok(());
            }
            Some(letter) if perl(*letter).is_some() => {
                let class = perl(*letter).unwrap_or_default();
                self.written.push_str(class);
            }
            Some('p' | 'P') => return self.property(),
            _ => {
                let letter = self.escaped()?;
                self.literal(letter);
                return Ok(());
            }
        }
        self.rest.next();
        Ok(())
    }

    /// All up to `\E`, or to the end.
    fn quoted(&mut self) {
        while let Some(letter) = self.rest.next() {
            if letter == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(letter);
        }
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`.
    fn property(&mut self) -> Result<(), String> {
        let negated = self.rest.next() == Some('P');
        let mut name = String::new();
        match self.rest.next() {
            Some('{') => loop {
                match self.rest.next() {
                    Some('}') => break,
                    Some(letter) => name.push(letter),
                    None => return Err("a \\p{ without a }".to_owned()),
                }
            },
            Some(letter) => name.push(letter),
            None => return Err("a \\p without a name".to_owned()),
        }
        let inverted = name.strip_prefix('^');
        let letter = if negated == inverted.is_some() { 'p' } else { 'P' };
        // Go knows neither `\p{name=value}` nor the like.
        let name = inverted.unwrap_or(&name);
        if !name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_') {
            return Err(format!("unknown class \\p{{{name}}}"));
        }
        // However Rust lets it be written.
        let known = name.replace('_', "").to_ascii_lowercase();
        let all = known.trim_start_matches("is") == "any";
        self.named += 1;
        self.folded += if all { FOLDED_ALL } else { FOLDED };
        _ = write!(self.written, "\\{letter}{{{name}}}");
        Ok(())
    }

    /// The one character that is written behind a backslash.
    fn escaped(&mut self) -> Result<char, String> {
        let unknown = |letter: char| Err(format!("unknown escape \\{letter}"));
        match self.rest.next() {
            None => Err("a backslash at the end".to_owned()),
            Some('a') => Ok('\u{7}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('v') => Ok('\u{b}'),
            Some('x') => self.hexadecimal(),
            Some(letter @ '0'..='7') => self.octal(letter),
            Some(letter) if letter.is_ascii_alphanumeric() || !letter.is_ascii() => unknown(letter),
            Some(letter) => Ok(letter),
        }
    }

    /// `\x7F` or `\x{10FFFF}`.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let mut digits = String::new();
        if self.rest.next_if_eq(&'{').is_some() {
            while let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit) {
                digits.push(digit);
            }
            if self.rest.next() != Some('}') {
                return Err("a \\x{ without a }".to_owned());
            }
        } else {
            digits.extend(self.rest.next_if(char::is_ascii_hexdigit));
            digits.extend(self.rest.next_if(char::is_ascii_hexdigit));
            if digits.len() < 2 {
                return Err("a \\x without two hexadecimal digits".to_owned());
            }
        }
        let code = u32::from_str_radix(&digits, 16).ok();
        code.and_then(char::from_u32).ok_or_else(|| format!("\\x{{{digits}}} is no character"))
    }

    /// `\0`, `\12`, `\123`. A single digit other than 0 would be a reference back, which there is none of.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let is_octal = |letter: &char| matches!(letter, '0'..='7');
        if first != '0' && !self.rest.peek().is_some_and(is_octal) {
            return Err(format!("unknown escape \\{first}"));
        }
        let mut digits = String::from(first);
        for _ in 0..2 {
            digits.extend(self.rest.next_if(is_octal));
        }
        let code = u32::from_str_radix(&digits, 8).ok();
        code.and_then(char::from_u32).ok_or_else(|| format!("unknown escape \\{digits}"))
    }

    /// What a group starts with. Names and the rest of it are the same.
    fn group(&mut self) -> Result<(), String> {
        self.written.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.written.push('?');
        match self.rest.peek() {
            Some('P' | '<') => {}
            _ => {
                while let Some(flag) =
                    self.rest.next_if(|letter| letter.is_ascii_alphabetic() || *letter == '-')
                {
                    if !FLAGS.contains(&flag) {
                        return Err(format!("unknown flag {flag:?} behind (?"));
                    }
                    self.folds |= flag == 'i';
                    self.written.push(flag);
                }
                return Ok(());
            }
        }
        // A name: up to its `>`, nothing in it is an operator.
        for letter in self.rest.by_ref() {
            self.written.push(letter);
            if letter == '>' {
                break;
            }
        }
        Ok(())
    }

    /// `*`, `+` or `?`, and whether it is lazy. Another one behind it is not allowed.
    fn repetition(&mut self, letter: char) -> Result<(), String> {
        self.written.push(letter);
        self.end_of_repetition()
    }

    fn end_of_repetition(&mut self) -> Result<(), String> {
        self.written.extend(self.rest.next_if_eq(&'?'));
        match self.rest.peek() {
            Some(letter @ ('*' | '+' | '?')) => Err(format!("nothing to repeat before {letter}")),
            Some('{') => {
                let mut ahead = self.rest.clone();
                ahead.next();
                if count(&mut ahead).is_some() {
                    Err("nothing to repeat before {".to_owned())
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a count follows a brace.
    fn is_count(&self) -> bool {
        count(&mut self.rest.clone()).is_some()
    }

    fn count(&mut self) -> Result<(), String> {
        if let Some((least, most)) = count(&mut self.rest) {
            for number in [Some(&least), most.as_ref()].into_iter().flatten() {
                if number.parse::<u32>().map_or(!number.is_empty(), |number| number > 1000) {
                    return Err(format!("a repetition of more than 1000: {number}"));
                }
            }
            match most {
                Some(most) => _ = write!(self.written, "{{{least},{most}}}"),
                None => _ = write!(self.written, "{{{least}}}"),
            }
        }
        self.end_of_repetition()
    }

    /// Behind a `[`.
    fn class(&mut self) -> Result<(), String> {
        self.written.push('[');
        self.written.extend(self.rest.next_if_eq(&'^'));
        let mut first = true;
        loop {
            match self.rest.peek().copied() {
                None => return Err("a [ without a ]".to_owned()),
                Some(']') if !first => break,
                Some('[') if self.posix()? => {}
                Some('\\') if self.shorthand()? => {}
                Some(_) => self.ranges()?,
            }
            first = false;
        }
        self.rest.next();
        self.written.push(']');
        Ok(())
    }

    /// `[:alpha:]`, if it is one.
    fn posix(&mut self) -> Result<bool, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        if ahead.next() != Some(':') {
            return Ok(false);
        }
        let mut name = String::new();
        while let Some(letter) = ahead.next_if(|letter| letter.is_ascii_lowercase() || *letter == '^') {
            name.push(letter);
        }
        if (ahead.next(), ahead.next()) != (Some(':'), Some(']')) {
            return Ok(false);
        }
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(&name)) {
            return Err(format!("unknown class [:{name}:]"));
        }
        self.rest = ahead;
        _ = write!(self.written, "[:{name}:]");
        Ok(true)
    }

    /// A class that is written as a backslash and a letter, if it is one.
    fn shorthand(&mut self) -> Result<bool, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        match ahead.peek() {
            Some('p' | 'P') => {
                self.rest = ahead;
                self.property()?;
                Ok(true)
            }
            Some(letter) => match perl(*letter) {
                Some(class) => {
                    ahead.next();
                    self.rest = ahead;
                    self.written.push_str(class);
                    Ok(true)
                }
                None => Ok(false),
            },
            None => Ok(false),
        }
    }

    /// All up to a class within the class, or to the end. They are one of their own: case is then looked up for them alone.
    fn ranges(&mut self) -> Result<(), String> {
        self.written.push('[');
        loop {
            self.range()?;
            match self.rest.peek().copied() {
                Some(']' | '[' | '\\') | None => break,
                Some(_) => {}
            }
        }
        self.written.push(']');
        Ok(())
    }

    /// One character of a class, or two with a hyphen between them.
    fn range(&mut self) -> Result<(), String> {
        let low = self.member()?;
        self.literal(low);
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|letter| *letter != ']') {
            self.rest = ahead;
            let high = self.member()?;
            self.folded += (u32::from(high).saturating_sub(u32::from(low))) as usize;
            self.written.push('-');
            self.literal(high);
        }
        Ok(())
    }

    fn member(&mut self) -> Result<char, String> {
        match self.rest.next() {
            Some('\\') => self.escaped(),
            Some(letter) => Ok(letter),
            None => Err("a [ without a ]".to_owned()),
        }
    }
}

/// The classes that are of Unicode in Rust.
fn perl(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\x0C\r\x20]",
        'S' => r"[^\t\n\x0C\r\x20]",
        _ => return None,
    })
}

/// `2}`, `2,}` or `2,3}`.
fn count(rest: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let mut number = || {
        let mut number = String::new();
        while let Some(digit) = rest.next_if(char::is_ascii_digit) {
            number.push(digit);
        }
        (number, rest.next())
    };
    let (least, end) = number();
    match (least.is_empty(), end) {
        (false, Some('}')) => Some((least, None)),
        (false, Some(',')) => match number() {
            (most, Some('}')) => Some((least, Some(most))),
            _ => None,
        },
        _ => None,
    }
}
