use super::super::tests::{fail, hold};

#[test]
fn addresses() {
    hold(&[
        "isIP('127.0.0.1') && isIP('::1') && isIP('2001:db8::68')",
        "!isIP('127.0.0.256') && !isIP(':::1') && !isIP('192.168.0.1.0') && !isIP('')",
        "!isIP('192.168.0.01') && !isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && !isIP('::ffff:102:304')",
        "isIP('::1.2.3.4') && !isIP('1::2::3') && !isIP('12345::') && !isIP(' ::1')",
        "ip('2001:DB8::68') == ip('2001:db8:0::68') && ip('127.0.0.1') != ip('127.0.0.2')",
        "string(ip('2001:DB8::0:68')) == '2001:db8::68' && string(ip('192.168.0.1')) == '192.168.0.1'",
    ]);
    fail(&[
        ("ip('192.168.0.1.0')", "is no IP address"),
        ("ip('fe80::1%eth0')", "has a zone"),
        ("ip('::ffff:1.2.3.4')", "IPv4-mapped"),
    ]);
}

#[test]
fn canonical() {
    hold(&[
        "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd')",
        "!ip.isCanonical('2001:DB8::ABCD') && !ip.isCanonical('2001:db8::0:0:0:abcd')",
        "!ip.isCanonical('::1.2.3.4') && ip.isCanonical('::')",
    ]);
    fail(&[("ip.isCanonical('127.0.0.1.0')", "is no IP address")]);
}

#[test]
fn families() {
    hold(&["ip('127.0.0.1').family() == 4", "ip('::1').family() == 6"]);
}

#[test]
fn kinds() {
    hold(&[
        "ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified()",
        "!ip('127.0.0.1').isUnspecified() && !ip('::1').isUnspecified()",
        "ip('127.0.0.1').isLoopback() && ip('127.8.9.1').isLoopback() && ip('::1').isLoopback()",
        "!ip('192.168.0.1').isLoopback() && !ip('2001:db8::abcd').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "ip('ff32::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
        "!ip('224.0.1.1').isLinkLocalMulticast() && !ip('fd00::1').isLinkLocalMulticast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "!ip('192.168.0.1').isLinkLocalUnicast() && !ip('fd80::1').isLinkLocalUnicast()",
        "ip('192.168.0.1').isGlobalUnicast() && ip('2001:db8::abcd').isGlobalUnicast()",
        "!ip('255.255.255.255').isGlobalUnicast() && !ip('ff00::1').isGlobalUnicast()",
        "!ip('0.0.0.0').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()",
        "!ip('fe80::1').isGlobalUnicast() && !ip('224.0.0.1').isGlobalUnicast() && !ip('::').isGlobalUnicast()",
    ]);
}
