//! The name under which this process decides: who, and from where. Read-only; names are for people, not for access.

use crate::domain::Author;

/// `user@tty`, or `user@pid N` without a terminal.
pub fn author_here() -> Author {
    let place = rustix::termios::ttyname(std::io::stdin(), Vec::new())
        .ok()
        .and_then(|name| name.into_string().ok())
        .map(|name| name.trim_start_matches("/dev/").to_owned())
        .unwrap_or_else(|| format!("pid {}", std::process::id()));
    author_at(&place)
}

/// `user@place`.
pub fn author_at(place: &str) -> Author {
    let named = ["USER", "LOGNAME"].map(|name| std::env::var(name).unwrap_or_default());
    let uid = rustix::process::getuid().as_raw();
    // A directory service may know users that the file does not; they keep their number.
    let accounts = || std::fs::read("/etc/passwd").unwrap_or_default();
    let user = named
        .into_iter()
        .find(|user| !user.is_empty())
        .or_else(|| user_name(&String::from_utf8_lossy(&accounts()), uid))
        .unwrap_or_else(|| format!("uid {uid}"));
    Author(format!("{user}@{place}"))
}

/// Name of a user in the text of passwd(5): `name:password:uid:…`.
fn user_name(accounts: &str, uid: u32) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let accounts =
            "# comment\nroot:x:0:0:root:/root:/bin/sh\n+::::\n:x:7::\nann:x:1000:100::/:\nbob:x:10";
        assert_eq!(user_name(accounts, 0).unwrap(), "root");
        assert_eq!(user_name(accounts, 1000).unwrap(), "ann");
        assert_eq!(user_name(accounts, 10).unwrap(), "bob");
        assert_eq!((user_name(accounts, 100), user_name(accounts, 7)), (None, None));
    }

    #[test]
    fn an_author_names_user_and_place() {
        assert!(author_at("ctl").0.ends_with("@ctl"));
        assert!(!author_here().0.starts_with('@'));
    }
}
