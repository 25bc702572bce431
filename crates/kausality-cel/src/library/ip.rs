//! Addresses: `ip("10.0.0.1")`.

use std::net::IpAddr;

use cel::common::value::CowVal;

use super::{Kind, Overload, bool, failed, function, int, member, opaque, plain, string, text};

pub(super) const NAME: &str = "net.IP";
pub(super) const IP: Kind = Kind::Opaque(NAME);

pub(super) static OVERLOADS: &[Overload] = &[
    function("ip", &[Kind::String], IP, |arguments| {
        Ok(CowVal::owned(Ip::parse(text(&arguments, 0)?).map_err(|error| failed("ip", error))?))
    }),
    function("isIP", &[Kind::String], Kind::Bool, |arguments| bool(Ip::parse(text(&arguments, 0)?).is_ok())),
    function("ip.isCanonical", &[Kind::String], Kind::Bool, |arguments| {
        let written = text(&arguments, 0)?;
        let parsed = Ip::parse(written).map_err(|error| failed("ip.isCanonical", error))?;
        bool(parsed.0.to_string() == written)
    }),
    function("string", &[IP], Kind::String, |arguments| string(plain::<Ip>(&arguments, 0)?.0.to_string())),
    member("family", &[IP], Kind::Int, |arguments| {
        int(if plain::<Ip>(&arguments, 0)?.0.is_ipv4() { 4 } else { 6 })
    }),
    member("isUnspecified", &[IP], Kind::Bool, |arguments| {
        bool(plain::<Ip>(&arguments, 0)?.0.is_unspecified())
    }),
    member("isLoopback", &[IP], Kind::Bool, |arguments| bool(plain::<Ip>(&arguments, 0)?.0.is_loopback())),
    member("isLinkLocalMulticast", &[IP], Kind::Bool, |arguments| {
        bool(plain::<Ip>(&arguments, 0)?.is_link_local_multicast())
    }),
    member("isLinkLocalUnicast", &[IP], Kind::Bool, |arguments| {
        bool(plain::<Ip>(&arguments, 0)?.is_link_local_unicast())
    }),
    member("isGlobalUnicast", &[IP], Kind::Bool, |arguments| {
        bool(plain::<Ip>(&arguments, 0)?.is_global_unicast())
    }),
];

/// An address that is no IPv4 address in the guise of IPv6, and has no zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ip(pub(super) IpAddr);

opaque!(Ip, NAME);

impl Ip {
    /// The parsers of Rust and Go agree: both refuse leading zeros in IPv4, and fields of more than four digits in
    /// IPv6. What differs is refused by the API server, too: zones, and IPv4 within IPv6.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('%') {
            return Err(format!("IP address {text:?} has a zone, which is not allowed"));
        }
        let address: IpAddr = text.parse().map_err(|_| format!("{text:?} is no IP address"))?;
        match address {
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => Err(format!(
                "{text:?} is an IPv4-mapped IPv6 address, which is not allowed: write it as IPv4"
            )),
            address => Ok(Self(address)),
        }
    }

    fn is_link_local_multicast(&self) -> bool {
        match self.0 {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => matches!(address.segments(), [first, ..] if first & 0xff0f == 0xff02),
        }
    }

    fn is_link_local_unicast(&self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }

    /// As Go has it: private addresses are global ones.
    fn is_global_unicast(&self) -> bool {
        let broadcast = matches!(self.0, IpAddr::V4(address) if address.is_broadcast());
        !broadcast
            && !self.0.is_unspecified()
            && !self.0.is_loopback()
            && !self.0.is_multicast()
            && !self.is_link_local_unicast()
    }
}

#[cfg(test)]
mod tests;
