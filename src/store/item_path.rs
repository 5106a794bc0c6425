//! Item ids as folder names. Ids are untrusted text of any length; two ids never share a name, and no name leaves
//! its folder, hides, or is special anywhere.

use crate::domain::fingerprint;

/// Longest name that spells the id out; longer ids are named by their hash.
const LONGEST: usize = 180;
/// How much of a long id its name still shows.
const SHOWN: usize = 100;
/// Name of the empty id. `%` is otherwise always followed by two hex digits.
const EMPTY: &str = "%";

/// Names that mean a device on some systems, with or without an extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Letters, digits, `-`, `_` and inner dots stand for themselves, every other byte is `%XX`. Names that would be
/// longer than 180 bytes are cut to 100 and end in `~` and the id's SHA-256.
pub fn encode_item_id(id: &str) -> String {
    if id.is_empty() {
        return EMPTY.to_owned();
    }
    let last = id.len() - 1;
    let device = is_device(id);
    let mut name = String::with_capacity(id.len());
    for (at, byte) in id.bytes().enumerate() {
        let plain = match byte {
            b'.' => at != 0 && at != last,
            b'-' => at != 0,
            _ => byte.is_ascii_alphanumeric() || byte == b'_',
        };
        if plain && !(device && at == 0) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() > LONGEST {
        name.truncate(SHOWN);
        name.push('~');
        name.push_str(&fingerprint([id]));
    }
    name
}

/// The id that a name spells out; `None` for a hashed or foreign name.
pub fn decode_item_id(name: &str) -> Option<String> {
    if name == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(u8::from_str_radix(rest.get(at + 1..at + 3)?, 16).ok()?);
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    let id = String::from_utf8(bytes).ok()?;
    (encode_item_id(&id) == name).then_some(id)
}

fn is_device(id: &str) -> bool {
    let stem = id.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered =
        |name: &str| stem.strip_prefix(name).is_some_and(|digit| matches!(digit.as_bytes(), [b'0'..=b'9']));
    DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_names() {
        for (id, name) in [
            ("q100", "q100"),
            ("a.b-c_D", "a.b-c_D"),
            ("", "%"),
            ("%", "%25"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            (".hidden", "%2Ehidden"),
            ("end.", "end%2E"),
            ("-rf", "%2Drf"),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("a\0b\n", "a%00b%0A"),
            ("ü", "%C3%BC"),
            ("NUL", "%4EUL"),
            ("com1.txt", "%63om1.txt"),
            ("common", "common"),
            ("~", "%7E"),
        ] {
            assert_eq!(encode_item_id(id), name);
            assert_eq!(decode_item_id(name).as_deref(), Some(id));
        }
        assert_eq!(decode_item_id("%2f"), None, "only the canonical spelling is a name");
        assert_eq!(decode_item_id("%ü"), None);
        assert_eq!(decode_item_id("a%2"), None);
    }

    #[test]
    fn long_ids_are_told_apart_by_hash() {
        let (one, two) = ("x".repeat(5000), format!("{}y", "x".repeat(4999)));
        assert_ne!(encode_item_id(&one), encode_item_id(&two));
        assert_eq!(encode_item_id(&one).len(), 165);
        assert_eq!(decode_item_id(&encode_item_id(&one)), None);
        // The name of a long id is itself no other id's name.
        assert_ne!(encode_item_id(&encode_item_id(&one)), encode_item_id(&one));
    }

    #[test]
    fn names_work_as_folders() {
        let root = tempfile::tempdir().unwrap();
        let ids =
            ["", ".", "..", "/", "a/../b", "ä".repeat(300).as_str(), "\u{202e}x", "con"].map(String::from);
        for id in &ids {
            let path = root.path().join(encode_item_id(id));
            assert_eq!(path.parent(), Some(root.path()));
            std::fs::create_dir(path).unwrap();
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), ids.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn encoding_is_injective_and_safe(ids in proptest::collection::vec("[a%./~N-]{0,4}|\\PC{0,8}|[a%/]{170,190}", 1..40)) {
            let mut seen: HashMap<String, String> = HashMap::new();
            for id in ids {
                let name = encode_item_id(&id);
                prop_assert!(!name.is_empty() && name.len() <= LONGEST && !name.starts_with('.'));
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"%~._-".contains(&b)));
                if !name.contains('~') {
                    prop_assert_eq!(decode_item_id(&name), Some(id.clone()));
                }
                if let Some(other) = seen.insert(name, id.clone()) {
                    prop_assert_eq!(other, id);
                }
            }
        }
    }
}
