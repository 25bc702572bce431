//! Names and uids that are made up, the same for the same seed.

/// A generator of names and uids.
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

/// Kubernetes leaves out vowels and what looks like them, so that no names are words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A uid, as Kubernetes makes them (version 4).
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFF,
            0x8000 | ((low >> 48) & 0x3FFF),
            low & 0xFFFF_FFFF_FFFF
        )
    }

    /// The five letters that follow a `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        (0..5).map(|_| char::from(LETTERS[usize::try_from(self.next() % 27).unwrap_or(0)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_names() {
        let mut one = Generator::new(7);
        let mut other = Generator::new(7);
        assert_eq!((one.uid(), one.suffix()), (other.uid(), other.suffix()));
        assert_ne!(one.uid(), other.suffix());
        let uid = one.uid();
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"), "{uid}");
    }
}
