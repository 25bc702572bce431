//! Networks: `cidr("10.0.0.0/8")`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::common::value::CowVal;

use super::ip::{IP, Ip};
use super::{Kind, Overload, bool, failed, function, int, member, opaque, plain, string, text};

pub(super) const NAME: &str = "net.CIDR";
const CIDR: Kind = Kind::Opaque(NAME);

pub(super) static OVERLOADS: &[Overload] = &[
    function("cidr", &[Kind::String], CIDR, |arguments| {
        Ok(CowVal::owned(Cidr::parse(text(&arguments, 0)?).map_err(|error| failed("cidr", error))?))
    }),
    function("isCIDR", &[Kind::String], Kind::Bool, |arguments| {
        bool(Cidr::parse(text(&arguments, 0)?).is_ok())
    }),
    function("string", &[CIDR], Kind::String, |arguments| string(plain::<Cidr>(&arguments, 0)?.to_string())),
    member("containsIP", &[CIDR, IP], Kind::Bool, |arguments| {
        bool(plain::<Cidr>(&arguments, 0)?.contains_ip(plain(&arguments, 1)?))
    }),
    member("containsIP", &[CIDR, Kind::String], Kind::Bool, |arguments| {
        let ip = Ip::parse(text(&arguments, 1)?).map_err(|error| failed("containsIP", error))?;
        bool(plain::<Cidr>(&arguments, 0)?.contains_ip(&ip))
    }),
    member("containsCIDR", &[CIDR, CIDR], Kind::Bool, |arguments| {
        bool(plain::<Cidr>(&arguments, 0)?.contains_cidr(plain(&arguments, 1)?))
    }),
    member("containsCIDR", &[CIDR, Kind::String], Kind::Bool, |arguments| {
        let cidr = Cidr::parse(text(&arguments, 1)?).map_err(|error| failed("containsCIDR", error))?;
        bool(plain::<Cidr>(&arguments, 0)?.contains_cidr(&cidr))
    }),
    member("ip", &[CIDR], IP, |arguments| Ok(CowVal::owned(plain::<Cidr>(&arguments, 0)?.address.clone()))),
    member("masked", &[CIDR], CIDR, |arguments| Ok(CowVal::owned(plain::<Cidr>(&arguments, 0)?.masked()))),
    member("prefixLength", &[CIDR], Kind::Int, |arguments| int(plain::<Cidr>(&arguments, 0)?.bits.into())),
];

/// An address and how many of its bits are the network's. The others need not be zero: two are equal only if they are
/// equal in all bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cidr {
    address: Ip,
    bits: u8,
}

opaque!(Cidr, NAME);

impl Cidr {
    fn parse(text: &str) -> Result<Self, String> {
        let (address, written) =
            text.rsplit_once('/').ok_or_else(|| format!("{text:?} is no network: it has no /"))?;
        let address = Ip::parse(address)?;
        let digits = written.bytes().all(|digit| digit.is_ascii_digit());
        let padded = written.len() > 1 && written.starts_with('0');
        let bits = written.parse::<u8>().ok().filter(|bits| digits && !padded && *bits <= width(&address));
        let bits = bits.ok_or_else(|| {
            format!("{text:?} is no network: {written:?} is no number of bits from 0 to its width")
        })?;
        Ok(Self { address, bits })
    }

    fn masked(&self) -> Self {
        Self { address: mask(&self.address, self.bits), bits: self.bits }
    }

    fn contains_ip(&self, ip: &Ip) -> bool {
        width(ip) == width(&self.address) && mask(ip, self.bits) == mask(&self.address, self.bits)
    }

    fn contains_cidr(&self, other: &Self) -> bool {
        self.bits <= other.bits && self.contains_ip(&other.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address.0, self.bits)
    }
}

fn width(ip: &Ip) -> u8 {
    if ip.0.is_ipv4() { 32 } else { 128 }
}

/// An address with all bits but the first so many being zero.
fn mask(ip: &Ip, bits: u8) -> Ip {
    let host = u32::from(width(ip).saturating_sub(bits));
    Ip(match ip.0 {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(host).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(host).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    })
}

#[cfg(test)]
mod tests;
