//! Just enough of the text format of protocol buffers to read the vectors.

/// A field and its values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<(String, Value)>);

#[derive(Clone, Debug)]
pub(super) enum Value {
    Message(Message),
    /// A text as bytes: not all of them are UTF-8.
    Text(Vec<u8>),
    /// A number, or a word.
    Word(String),
}

impl Message {
    pub(super) fn read(source: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: source };
        let message = reader.message(None)?;
        Ok(message)
    }

    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value)
    }

    pub(super) fn messages<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Message> {
        self.all(name).filter_map(|value| if let Value::Message(it) = value { Some(it) } else { None })
    }

    pub(super) fn message(&self, name: &str) -> Option<&Message> {
        self.messages(name).next()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.all(name).find_map(|value| match value {
            Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            Value::Word(word) => Some(word.clone()),
            Value::Message(_) => None,
        })
    }

    /// The one field of what is a choice of fields.
    pub(super) fn only(&self) -> Option<(&str, &Value)> {
        self.0.first().map(|(name, value)| (name.as_str(), value))
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn message(&mut self, end: Option<char>) -> Result<Message, String> {
        let mut message = Message::default();
        loop {
            self.skip();
            match (self.rest.chars().next(), end) {
                (None, None) => return Ok(message),
                (Some(found), Some(end)) if found == end => {
                    self.advance(1);
                    return Ok(message);
                }
                (Some(',' | ';'), _) => self.advance(1),
                (Some(_), _) => self.field(&mut message)?,
                (None, Some(_)) => return Err("a message does not end".to_owned()),
            }
        }
    }

    fn field(&mut self, message: &mut Message) -> Result<(), String> {
        let name = match self.rest.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']').ok_or("a name does not end")?;
                self.rest = rest;
                name.to_owned()
            }
            None => self.word(),
        };
        if name.is_empty() {
            return Err(format!("no field at {:.40}", self.rest));
        }
        self.skip();
        if self.rest.starts_with(':') {
            self.advance(1);
            self.skip();
        }
        if self.rest.starts_with('[') {
            self.advance(1);
            loop {
                self.skip();
                match self.rest.chars().next() {
                    Some(']') => break self.advance(1),
                    Some(',') => self.advance(1),
                    Some(_) => message.0.push((name.clone(), self.value()?)),
                    None => return Err("a list does not end".to_owned()),
                }
            }
        } else {
            message.0.push((name, self.value()?));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.rest.chars().next() {
            Some('{') => {
                self.advance(1);
                self.message(Some('}')).map(Value::Message)
            }
            Some('<') => {
                self.advance(1);
                self.message(Some('>')).map(Value::Message)
            }
            Some('"' | '\'') => {
                let mut text = Vec::new();
                while self.rest.starts_with(['"', '\'']) {
                    self.text(&mut text)?;
                    self.skip();
                }
                Ok(Value::Text(text))
            }
            _ => Ok(Value::Word(self.word())),
        }
    }

    fn text(&mut self, text: &mut Vec<u8>) -> Result<(), String> {
        let quote = self.rest.as_bytes()[0];
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        loop {
            match bytes.get(at) {
                None => return Err("a text does not end".to_owned()),
                Some(b'\\') => {
                    let digits = |from: usize, most: usize, radix: u32| {
                        (from..from + most)
                            .take_while(|at| bytes.get(*at).is_some_and(|it| char::from(*it).is_digit(radix)))
                            .count()
                    };
                    let number = |from: usize, count: usize, radix: u32| {
                        u32::from_str_radix(std::str::from_utf8(&bytes[from..from + count]).unwrap(), radix)
                            .unwrap()
                    };
                    let letter = bytes[at + 1];
                    at += 2;
                    match letter {
                        b'n' => text.push(b'\n'),
                        b't' => text.push(b'\t'),
                        b'r' => text.push(b'\r'),
                        b'a' => text.push(7),
                        b'b' => text.push(8),
                        b'f' => text.push(12),
                        b'v' => text.push(11),
                        b'x' => {
                            let count = digits(at, 2, 16);
                            text.push(u8::try_from(number(at, count, 16)).unwrap());
                            at += count;
                        }
                        b'u' | b'U' => {
                            let count = if letter == b'u' { 4 } else { 8 };
                            let letter = char::from_u32(number(at, count, 16)).ok_or("no such letter")?;
                            text.extend(letter.to_string().as_bytes());
                            at += count;
                        }
                        b'0'..=b'7' => {
                            let count = digits(at - 1, 3, 8);
                            text.push(u8::try_from(number(at - 1, count, 8)).unwrap());
                            at += count - 1;
                        }
                        other => text.push(other),
                    }
                }
                Some(letter) if *letter == quote => break,
                Some(letter) => {
                    text.push(*letter);
                    at += 1;
                }
            }
        }
        self.advance(at + 1);
        Ok(())
    }

    fn word(&mut self) -> String {
        let end = self.rest.find(|letter: char| !(letter.is_alphanumeric() || "_.+-/".contains(letter)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.to_owned()
    }

    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}
