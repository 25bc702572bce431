//! How large an expression is, from its text alone.
//!
//! The parser, and all that works on what comes out of it, goes as deep as the source does. So this is told before
//! anything is parsed, in one pass without recursion: what is found here is never less than what the parser will make.

use std::mem;

use crate::environment::Limits;
use crate::fault::Fault;

/// How many levels a bracket or a conditional counts for: the parts that a macro such as `map` is made of, and the
/// stack that the parser needs.
const BRACKET: usize = 3;

/// A macro of two variables only. That of one, which `cel` has under this name, too, is `exists_one`.
const ALONE: &str = "existsOne";

/// # Errors
/// If the source is larger than the limits allow: where it is too large.
pub(crate) fn check(source: &str, limits: Limits) -> Result<(), Fault> {
    if source.len() > limits.source {
        let message = format!(
            "the expression is too long: {} bytes, and at most {} are allowed",
            source.len(),
            limits.source
        );
        return Err(Fault::on("", 0, 0, message));
    }
    let mut scan = Scan { current: Frame::default(), open: Vec::new(), terms: 0, limits, closed: None };
    let mut tokens = Tokens { source, at: 0 };
    let mut before = Token::End;
    let mut alone = false;
    loop {
        let (start, token) = tokens.next();
        let within = scan.take(before, token);
        within.map_err(|what| Fault::at(source, start, what))?;
        let text = source.get(start..tokens.at).unwrap_or_default();
        match token {
            Token::End => return Ok(()),
            Token::Open if alone && text == "(" => scan.current.alone = Some((start, 0)),
            Token::Separator if text == "," => {
                if let Some((_, commas)) = &mut scan.current.alone {
                    *commas += 1;
                }
            }
            _ => {}
        }
        if let Some(at) = scan.closed.take() {
            return Err(Fault::at(
                source,
                at,
                format!("undeclared reference to '{ALONE}' (in container '')"),
            ));
        }
        alone = before == Token::Operator && text == ALONE;
        before = token;
    }
}

/// What is between brackets.
#[derive(Default)]
struct Frame {
    /// Conditionals before, which everything after them is part of, and the levels of `&&` and `||`, which are balanced.
    base: usize,
    logical: usize,
    /// The operators since the last separator.
    chain: usize,
    /// The deepest brackets since the last separator.
    inner: usize,
    /// The deepest part before the last separator.
    deepest: usize,
    /// If it is what [`ALONE`] is given: where that begins, and the commas in it.
    alone: Option<(usize, usize)>,
}

impl Frame {
    fn depth(&self) -> usize {
        self.deepest.max(self.base + self.chain + self.inner)
    }

    fn separate(&mut self) {
        self.deepest = self.depth();
        (self.chain, self.inner) = (0, 0);
    }
}

struct Scan {
    current: Frame,
    /// Those that `current` is within, the innermost last.
    open: Vec<Frame>,
    terms: usize,
    limits: Limits,
    /// Where an [`ALONE`] of one variable was that has just been closed.
    closed: Option<usize>,
}

impl Scan {
    fn take(&mut self, before: Token, token: Token) -> Result<(), String> {
        self.terms += 1;
        if self.terms > self.limits.terms {
            return Err(format!(
                "the expression has too many parts: at most {} are allowed",
                self.limits.terms
            ));
        }
        match token {
            Token::Open => self.open.push(mem::take(&mut self.current)),
            // What is not closed is as deep as if it were, and the parser will complain.
            Token::End => while self.close() {},
            Token::Close => {
                self.close();
            }
            Token::Value => {}
            Token::Operator => self.current.chain += 1,
            Token::Separator => self.current.separate(),
            Token::Logical => {
                self.current.separate();
                self.current.logical += 1;
                self.current.base += usize::from(self.current.logical.is_power_of_two());
            }
            // Of `.?a`, `[?a]` and `{?a: b}`, not of a conditional.
            Token::Question if matches!(before, Token::Operator | Token::Open) => {}
            Token::Question => {
                self.current.separate();
                self.current.base += BRACKET;
            }
        }
        if self.open.len() * BRACKET + self.current.depth() > self.limits.depth {
            return Err(format!(
                "the expression is nested too deeply: at most {} levels are allowed, a bracket or conditional counting as {BRACKET}",
                self.limits.depth
            ));
        }
        Ok(())
    }

    /// Ends the innermost bracket, if there is one.
    fn close(&mut self) -> bool {
        let Some(outer) = self.open.pop() else { return false };
        let closed = mem::replace(&mut self.current, outer);
        self.closed = closed.alone.filter(|(_, commas)| *commas == 1).map(|(at, _)| at);
        let depth = closed.depth() + BRACKET;
        self.current.inner = self.current.inner.max(depth);
        true
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Open,
    Close,
    /// `&&` or `||`.
    Logical,
    /// Names and literals.
    Value,
    /// Whatever makes one part of two, or of one.
    Operator,
    Question,
    /// `,` and `:`.
    Separator,
    End,
}

struct Tokens<'a> {
    source: &'a str,
    at: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> (usize, Token) {
        self.skip();
        let start = self.at;
        let Some(first) = self.peek(0) else { return (start, Token::End) };
        let token = match first {
            b'(' | b'[' | b'{' => self.one(Token::Open),
            b')' | b']' | b'}' => self.one(Token::Close),
            b',' | b':' => self.one(Token::Separator),
            b'?' => self.one(Token::Question),
            b'"' | b'\'' => self.text(false),
            b'&' | b'|' if self.peek(1) == Some(first) => {
                self.at += 2;
                Token::Logical
            }
            b'=' | b'!' | b'<' | b'>' if self.peek(1) == Some(b'=') => {
                self.at += 2;
                Token::Operator
            }
            b'0'..=b'9' => {
                self.number();
                Token::Value
            }
            letter if is_letter(letter) => self.word(),
            letter if letter.is_ascii() => self.one(Token::Operator),
            _ => {
                self.at +=
                    self.source.get(start..).and_then(|it| it.chars().next()).map_or(1, char::len_utf8);
                Token::Value
            }
        };
        (start, token)
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    fn one(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }

    /// White space and comments.
    fn skip(&mut self) {
        while let Some(letter) = self.peek(0) {
            if letter.is_ascii_whitespace() {
                self.at += 1;
            } else if letter == b'/' && self.peek(1) == Some(b'/') {
                while self.peek(0).is_some_and(|letter| letter != b'\n') {
                    self.at += 1;
                }
            } else {
                return;
            }
        }
    }

    fn number(&mut self) {
        while let Some(letter) = self.peek(0) {
            let fraction = letter == b'.' && self.peek(1).is_some_and(|next| next.is_ascii_digit());
            if !is_letter(letter) && !letter.is_ascii_digit() && !fraction {
                return;
            }
            self.at += 1;
        }
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.peek(0).is_some_and(|letter| is_letter(letter) || letter.is_ascii_digit()) {
            self.at += 1;
        }
        let word = self.source.get(start..self.at).unwrap_or_default();
        let prefix = word.len() < 3 && word.bytes().all(|letter| b"rRbB".contains(&letter));
        match self.peek(0) {
            Some(b'"' | b'\'') if prefix => self.text(word.contains(['r', 'R'])),
            _ if word == "in" => Token::Operator,
            _ => Token::Value,
        }
    }

    /// A literal in quotes. One that does not end goes on to the end of the source.
    fn text(&mut self, raw: bool) -> Token {
        let Some(quote) = self.peek(0) else { return Token::Value };
        let three = [Some(quote); 3];
        let long = [self.peek(0), self.peek(1), self.peek(2)] == three;
        self.at += if long { 3 } else { 1 };
        while let Some(letter) = self.peek(0) {
            if letter == b'\\' && !raw {
                self.at += 1;
            } else if letter == quote && (!long || [self.peek(0), self.peek(1), self.peek(2)] == three) {
                self.at += if long { 3 } else { 1 };
                return Token::Value;
            } else if letter == b'\n' && !long {
                // Such a literal is none: what follows is read as the parser will read it.
                return Token::Value;
            }
            self.at += 1;
        }
        Token::Value
    }
}

fn is_letter(letter: u8) -> bool {
    letter.is_ascii_alphabetic() || letter == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least depth that a source passes with.
    fn depth(source: &str) -> usize {
        let passes = |depth| check(source, Limits { source: 10_000, terms: 10_000, depth, cost: 0 }).is_ok();
        (0..10_000).find(|depth| passes(*depth)).unwrap_or(usize::MAX)
    }

    #[test]
    fn depth_is_that_of_the_deepest_part() {
        for (source, expected) in [
            ("a", 0),
            ("a.b.c", 2),
            ("a + b + c", 2),
            ("a.b == c.d && e.f == g.h", 4),
            ("f(a.b, c)", 4),
            ("f(a.b, c).d.e", 6),
            ("a ? b : c ? d : e", 6),
            ("a.?b[?c]", 4),
            ("'((((' + r'\\' + \"\"\"(\"\"\" // ((((\n", 2),
            ("((a", 6),
            ("!!a", 2),
        ] {
            assert_eq!(depth(source), expected, "{source}");
        }
    }

    #[test]
    fn many_conjuncts_are_not_deep() {
        assert_eq!(depth(&vec!["a.b"; 1000].join(" && ")), 11);
    }

    #[test]
    fn too_many_parts_are_told_with_their_place() {
        let limits = Limits { source: 100, terms: 4, depth: 100, cost: 0 };
        assert_eq!(check("1 + 2", limits), Ok(()));
        let fault = check("1 +\n 2+ 3", limits).err();
        assert_eq!(fault.map(|it| (it.line, it.column)), Some((2, 5)));
    }
}
