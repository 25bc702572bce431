use super::super::tests::{fail, hold};

#[test]
fn networks() {
    hold(&[
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && isCIDR('192.168.0.1/16') && isCIDR('0.0.0.0/0')",
        "!isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && !isCIDR('192.168.0.0/') && !isCIDR('192.168.0.0')",
        "!isCIDR('192.168.0.0/08') && !isCIDR('192.168.0.0/+8') && !isCIDR('10.0.0.0/8/8') && !isCIDR('/8')",
        "!isCIDR('::ffff:1.2.3.0/120') && !isCIDR('fe80::%eth0/64') && !isCIDR('010.0.0.0/8')",
        "string(cidr('192.168.0.0/24')) == '192.168.0.0/24' && string(cidr('2001:DB8::/32')) == '2001:db8::/32'",
    ]);
    fail(&[
        ("cidr('192.168.0.0/')", "no number of bits"),
        ("cidr('192.168.0.0/33')", "no number of bits"),
        ("cidr('192.168.0.0')", "it has no /"),
        ("cidr('x/8')", "is no IP address"),
    ]);
}

#[test]
fn containing_addresses() {
    hold(&[
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))",
        "cidr('192.168.0.0/24').containsIP('192.168.0.1') && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
        "cidr('2001:db8::/32').containsIP(ip('2001:db8::1')) && !cidr('2001:db8::/32').containsIP('2001:dc8::1')",
        "cidr('0.0.0.0/0').containsIP('1.2.3.4') && !cidr('0.0.0.0/0').containsIP('::1')",
        "cidr('192.168.0.7/24').containsIP('192.168.0.1') && cidr('::/0').containsIP('2001:dc8::1')",
    ]);
    fail(&[("cidr('192.168.0.0/24').containsIP('192.168.0')", "is no IP address")]);
}

#[test]
fn containing_networks() {
    hold(&[
        "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24'))",
        "!cidr('192.168.1.0/24').containsCIDR(cidr('192.168.2.0/24'))",
        "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('192.168.1.0/24').containsCIDR('192.168.2.0/24')",
        "cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.1/32')) && !cidr('192.168.0.0/24').containsCIDR(cidr('192.169.0.1/32'))",
        "!cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/23')) && cidr('192.168.0.0/24').containsCIDR('192.168.0.0/24')",
        "cidr('2001:db8::/32').containsCIDR('2001:db8::/33') && !cidr('2001:db8::/32').containsCIDR(cidr('2001:db8::/31'))",
        "!cidr('0.0.0.0/0').containsCIDR('::/0')",
    ]);
    fail(&[("cidr('192.168.0.0/24').containsCIDR('192.168.0.0')", "it has no /")]);
}

#[test]
fn parts() {
    hold(&[
        "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('192.168.0.1/24').ip().family() == 4",
        "cidr('::1/128').ip() == ip('::1') && cidr('::1/128').ip().family() == 6",
        "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('192.168.0.1/24') != cidr('192.168.0.0/24')",
        "cidr('192.168.0.0/24') == cidr('192.168.0.0/24').masked()",
        "cidr('2001:db8:1::/32').masked() == cidr('2001:db8::/32') && cidr('1.2.3.4/0').masked() == cidr('0.0.0.0/0')",
        "cidr('192.168.0.0/16').prefixLength() == 16 && cidr('::1/128').prefixLength() == 128",
    ]);
}
