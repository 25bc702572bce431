use super::super::tests::{fail, hold};

#[test]
fn urls() {
    hold(&[
        "isURL('https://user:pass@example.com:80/path?query=val#fragment') && isURL('/absolute-path')",
        "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('') && !isURL('example.com') && isURL('*')",
        "isURL('mailto:somebody@example.com') && isURL('https://example.com') && isURL('HTTPS://example.com')",
        "!isURL(':foo') && !isURL('https://exa mple.com/') && isURL('https://example.com/a b') && !isURL('1http://a')",
        "!isURL('https://example.com/%zz') && !isURL('https://example.com/%2') && isURL('https://example.com/%2F')",
        "!isURL('https://example.com:port/') && isURL('https://example.com:/') && isURL('https://example.com:99999/')",
        "isURL('https://[::1]:80/') && !isURL('https://[::1/') && !isURL('https://[1.2.3.4]/') && !isURL('https://a[::1]/')",
        "!isURL('https://us<er@example.com/') && isURL('https://us%3Cer@example.com/') && !isURL('https://%41.com/')",
        "!isURL('https://example.com/\\n') && isURL('postgres://a:1,b:2/db') && isURL('https://a:1:2/') && isURL('https://%C3%A4.com/')",
    ]);
    fail(&[
        ("url('https://a:b:c/')", "is no port"),
        ("url('../relative-path')", "neither absolute nor"),
        ("url('https://example.com/%zz')", "hexadecimal"),
        ("url('//a:b:c/')", "is no port"),
    ]);
}

#[test]
fn schemes() {
    hold(&["url('/path').getScheme() == ''", "url('HTTPS://example.com/').getScheme() == 'https'"]);
}

#[test]
fn hosts() {
    hold(&[
        "url('https://example.com:80/').getHost() == 'example.com:80' && url('https://example.com/').getHost() == 'example.com'",
        "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]/').getHost() == '[::1]'",
        "url('/path').getHost() == '' && url('https://user:p@ss@EXAMPLE.com/').getHost() == 'EXAMPLE.com'",
        "url('//example.com/path').getHost() == 'example.com' && url('///path').getHost() == ''",
        "url('https://[fe80::1%25en0]:80/').getHost() == '[fe80::1%en0]:80' && url('mailto:a@b').getHost() == ''",
        "url('https://%C3%A4.com/').getHost() == 'ä.com'",
        "url('https://example.com:80/').getHostname() == 'example.com' && url('https://127.0.0.1:80/').getHostname() == '127.0.0.1'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]/').getHostname() == '::1'",
        "url('/path').getHostname() == ''",
        "url('https://example.com:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
        "url('/path').getPort() == '' && url('https://[::1]/').getPort() == '' && url('https://[::1]:8/').getPort() == '8'",
    ]);
}

#[test]
fn paths() {
    hold(&[
        "url('https://example.com/path').getEscapedPath() == '/path' && url('https://example.com').getEscapedPath() == ''",
        "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
        "url('https://example.com/a%2Fb').getEscapedPath() == '/a%2Fb' && url('/a%2fb').getEscapedPath() == '/a%2fb'",
        "url('/a%20b c').getEscapedPath() == '/a%20b%20c' && url(\"/a!'()*[]\").getEscapedPath() == \"/a!'()*[]\"",
        "url('/ä').getEscapedPath() == '/%C3%A4' && url('/a?b#c').getEscapedPath() == '/a' && url('*').getEscapedPath() == '*'",
        "url('/a#b?c').getEscapedPath() == '/a' && url('/../a/./b').getEscapedPath() == '/../a/./b'",
        "url('//host/path').getEscapedPath() == '/path' && url('mailto:a@b').getEscapedPath() == ''",
    ]);
}

#[test]
fn queries() {
    hold(&[
        "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "url('https://example.com/path?key with spaces=value with spaces').getQuery() == {'key with spaces': ['value with spaces']}",
        "url('https://example.com/path?').getQuery() == {} && url('https://example.com/path').getQuery() == {}",
        "url('/?a+b=%20c%2B').getQuery() == {'a b': [' c+']} && url('/?a&b=&=c').getQuery() == {'a': [''], 'b': [''], '': ['c']}",
        // What is malformed is left out.
        "url('/?a=1;b=2&c=%zz&d=3&&').getQuery() == {'d': ['3']}",
        "url('/?a=b=c#d=e').getQuery() == {'a': ['b=c']} && url('/?a??').getQuery() == {'a??': ['']}",
    ]);
    let many = |count: usize| vec!["a"; count].join("&");
    hold(&[
        &format!("url('/?{}').getQuery()['a'].size() == 10000", many(10_000)),
        &format!("url('/?{}').getQuery() == {{}}", many(10_001)),
    ]);
}

#[test]
fn equality() {
    hold(&[
        "url('HTTPS://example.com/a') == url('https://example.com/a') && url('/a') != url('/b')",
        "url('/a b') == url('/a%20b') && url('/a#b') != url('/a') && url('/a#') == url('/a') && url('/a?') != url('/a')",
        "url('https://u:p@example.com') != url('https://example.com') && url('https:///a') != url('https:/a')",
        "url('https://us%65r@a/') == url('https://user@a/') && url('mailto:a') != url('mailto:b')",
    ]);
}
