//! Which fields hold secrets, by their names.
//!
//! References stay readable: `secretName`, `tokenSecretRef`, `passwordSecretRef.key` and `imagePullSecrets` say where a secret is,
//! not what it is. So the last word of a name decides, and only values that are texts are secrets.

/// The last words of names whose value is a secret, also as the end of a word: `accesstoken`.
const WORDS: [&str; 6] = ["token", "password", "passwd", "passphrase", "apikey", "privatekey"];

/// The last words of names whose value is a secret, where there are several.
const PHRASES: [&[&str]; 18] = [
    &["api", "key"],
    &["private", "key"],
    &["signing", "key"],
    &["account", "key"],
    &["master", "key"],
    &["shared", "key"],
    &["auth", "key"],
    &["secret", "access", "key"],
    &["secret", "key", "base"],
    &["secret", "value"],
    &["connection", "string"],
    &["client", "secret"],
    &["shared", "secret"],
    &["consumer", "secret"],
    &["hmac", "secret"],
    &["jwt", "secret"],
    &["cookie", "secret"],
    &["session", "secret"],
];

/// Whether a field of this name holds a secret, if its value is a text. `secret` alone often names a Secret, and `secretKey` a key
/// in one.
pub(super) fn of_field(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else { return false };
    // Several are as secret as one.
    let last = last.strip_suffix('s').filter(|word| !word.ends_with('s')).unwrap_or(last);
    WORDS.iter().any(|word| last.ends_with(word)) || ends_in(&words, &PHRASES)
}

/// Whether a variable or a header of this name holds a secret: `{name: DB_PASSWORD, value: …}`. Here `SECRET` is a value.
pub(super) fn of_variable(name: &str) -> bool {
    let variables: [&[&str]; 4] = [&["secret"], &["secret", "key"], &["access", "key"], &["authorization"]];
    of_field(name) || ends_in(&words(name), &variables)
}

/// Whether a text in such a place is a secret, and does not say where one comes from: `$(DB_PASSWORD)`.
pub(super) fn is_value(text: &str) -> bool {
    let is_reference = |open: &str, close: char| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|name| !name.is_empty() && !name.contains(['$', '(', ')', '{', '}']))
    };
    !text.is_empty()
        && !matches!(text, "true" | "false")
        && !is_reference("$(", ')')
        && !is_reference("${", '}')
}

/// Whether a text holds a private key, wherever it is.
pub(super) fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

fn ends_in(words: &[String], phrases: &[&[&str]]) -> bool {
    phrases.iter().any(|phrase| {
        words.len() >= phrase.len()
            && words.iter().rev().zip(phrase.iter().rev()).all(|(word, it)| word == it)
    })
}

/// The words of a name, in small letters: `tokenSecretRef`, `DB_PASSWORD`, `x-api-key`, `APIToken2`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| letters.get(place));
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || letters.get(place + 1).is_some_and(|after| after.is_lowercase()));
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "token",
            "tokens",
            "bootstrapToken",
            "apiToken",
            "APIToken",
            "accesstoken",
            "refresh_token",
            "password",
            "adminPassword",
            "password2",
            "db.password",
            "passwd",
            "passphrase",
            "privateKey",
            "private_key",
            "apiKey",
            "x-api-key",
            "apikey",
            "clientSecret",
            "secretValue",
            "secretAccessKey",
            "connectionString",
            "sharedKey",
            "example.com/token",
        ] {
            assert!(of_field(name) && of_variable(name), "{name}");
        }
        for name in
            ["SECRET", "APP_SECRET", "SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "Authorization", "JWT_SECRET"]
        {
            assert!(of_variable(name), "{name}");
        }
    }

    #[test]
    fn names_of_what_is_none() {
        for name in [
            "",
            "-",
            "secretName",
            "secretRef",
            "tokenSecretRef",
            "passwordSecretRef",
            "passwordSecret",
            "imagePullSecrets",
            "secrets",
            "keyAlgorithm",
            "privateKeySecretRef",
            "privateKeyPath",
            "tokenFile",
            "tokenExpiration",
            "passwordKey",
            "key",
            "keys",
            "name",
            "credentialsSecret",
            "tlsSecret",
            "publicKey",
            "sshKey",
            "kmsKeyId",
            "tokenizer",
            "passwordPolicy",
            "secret",
            "secretKey",
            "tokenReviewerServiceAccount",
            "TOKEN_URL",
            "keyRef",
            "pass",
            "bypass",
        ] {
            assert!(!of_field(name), "{name}");
        }
        for name in ["TOKEN_URL", "PASSWORD_FILE", "SECRET_NAME", "AWS_ACCESS_KEY_ID", "TOKEN_TTL", "KEY"] {
            assert!(!of_variable(name), "{name}");
        }
    }

    #[test]
    fn what_says_where_a_secret_comes_from_is_none() {
        for text in ["", "true", "$(DB_PASSWORD)", "${TOKEN}"] {
            assert!(!is_value(text), "{text}");
        }
        for text in ["hunter2", "$ecret", "$()", "${a}${b}", "a$(B)", "/8f3"] {
            assert!(is_value(text), "{text}");
        }
    }
}
