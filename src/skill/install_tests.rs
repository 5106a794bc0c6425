//! Installing, taking away and going back; what is refused; what a crash at any step leaves.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use super::*;
use crate::skill::PackageFile;

const PLACES: [&str; 2] = [".agents/skills/cities", ".claude/skills/cities"];

fn name() -> SkillName {
    SkillName::parse("cities").unwrap()
}

fn package(text: &str) -> Package {
    let file = |path: &str, bytes: &str, executable| PackageFile {
        path: path.into(),
        bytes: bytes.as_bytes().to_vec(),
        executable,
    };
    Package::new(vec![
        file("SKILL.md", text, false),
        file("scripts/x.sh", "run\n", true),
        file("references/deep/er.md", text, false),
    ])
}

struct Place {
    dir: tempfile::TempDir,
    site: Site,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::new(dir.path(), Scope::Project).unwrap();
        Self { dir, site }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join(inside)
    }

    fn install(&self, text: &str, force: bool) -> Result<Vec<Outcome>, InstallError> {
        self.site.install(
            &name(),
            &package(text),
            &Client::ALWAYS,
            Mode::Real { force, step: &mut || Ok(()) },
        )
    }

    fn roll_back(&self, force: bool) -> Result<Vec<Outcome>, InstallError> {
        self.site.roll_back(&name(), Mode::Real { force, step: &mut || Ok(()) })
    }

    fn uninstall(&self, force: bool) -> Result<Vec<Outcome>, InstallError> {
        self.site.uninstall(&name(), Mode::Real { force, step: &mut || Ok(()) })
    }

    /// What each place holds, told by the text of its skill; a link is not followed.
    fn told(&self) -> Vec<String> {
        PLACES.map(|place| text_at(&self.path(place))).to_vec()
    }

    /// Names in the store, without receipts.
    fn store(&self) -> Vec<String> {
        let mut names = Vec::new();
        for client in ["agents", "claude"] {
            let Ok(entries) = fs::read_dir(self.path(STORE).join(client)) else { continue };
            names.extend(entries.map(|entry| format!("{client}/{}", entry.unwrap().file_name().display())));
        }
        names.sort();
        names
    }
}

/// `-`: nothing; `A`: exactly the package of that text; else what is wrong.
fn text_at(place: &Path) -> String {
    match fs::symlink_metadata(place) {
        Err(_) => "-".into(),
        Ok(found) if found.is_symlink() => "link".into(),
        Ok(_) => match Package::read(place) {
            Ok(read) => {
                let text = String::from_utf8(read.document().unwrap().to_vec()).unwrap();
                if read == package(&text) { text } else { format!("half {text}") }
            }
            Err(unfit) => unfit.to_string(),
        },
    }
}

fn changes(outcomes: &[Outcome]) -> Vec<&'static str> {
    outcomes.iter().map(|outcome| outcome.change.name()).collect()
}

#[test]
fn copies_are_put_replaced_and_brought_back() {
    let place = Place::new();
    assert_eq!(changes(&place.install("A", false).unwrap()), ["installed"; 2]);
    assert_eq!(place.told(), ["A", "A"]);
    assert_eq!(changes(&place.install("A", false).unwrap()), ["unchanged"; 2]);
    let replaced = place.install("B", false).unwrap();
    assert_eq!(changes(&replaced), ["replaced"; 2]);
    assert_eq!(text_at(&place.path(replaced[0].backup.as_ref().unwrap())), "A");
    let skills: Vec<_> = fs::read_dir(place.path(".agents/skills")).unwrap().collect();
    assert_eq!(skills.len(), 1, "no backup lies where clients look for skills");
    assert_eq!(changes(&place.install("A", false).unwrap()), ["replaced"; 2]);
    for text in ["B", "A"] {
        assert_eq!(changes(&place.roll_back(false).unwrap()), ["restored"; 2]);
        assert_eq!(place.told(), [text, text]);
    }
    assert_eq!(changes(&place.roll_back(false).unwrap()), ["removed"; 2]);
    assert_eq!(place.told(), ["-", "-"]);
    let nothing = place.roll_back(false).unwrap_err().to_string();
    assert!(nothing.contains("cities has nothing earlier"), "{nothing}");
    let gone = place.uninstall(false).unwrap_err().to_string();
    assert!(gone.contains("has not installed cities"), "{gone}");
}

#[test]
fn a_skill_that_was_taken_away_can_be_brought_back() {
    let place = Place::new();
    place.install("A", false).unwrap();
    assert_eq!(changes(&place.uninstall(false).unwrap()), ["removed"; 2]);
    assert_eq!(place.told(), ["-", "-"]);
    place.roll_back(false).unwrap();
    assert_eq!(place.told(), ["A", "A"]);
}

#[test]
fn other_clients_get_copies_on_request_and_are_kept_up_to_date() {
    let place = Place::new();
    let with = |text: &str, clients: &[Client]| {
        place
            .site
            .install(&name(), &package(text), clients, Mode::Real { force: false, step: &mut || Ok(()) })
            .unwrap()
    };
    with("A", &[Client::Agents, Client::Claude, Client::Codex, Client::Copilot]);
    assert_eq!(text_at(&place.path(".github/skills/cities")), "A");
    assert_eq!(with("B", &Client::ALWAYS).len(), 4);
    assert_eq!(text_at(&place.path(".codex/skills/cities")), "B");
    let home = Site::new(place.dir.path(), Scope::User).unwrap();
    home.install(&name(), &package("B"), &[Client::Pi], Mode::Real { force: true, step: &mut || Ok(()) })
        .unwrap();
    assert_eq!(text_at(&place.path(".pi/agent/skills/cities")), "B");
}

#[test]
fn what_planish_did_not_leave_there_is_refused_as_a_whole() {
    let place = Place::new();
    package("X").write_at(&place.path(PLACES[1]));
    let told = place.install("A", false).unwrap_err().to_string();
    assert!(told.contains(".claude/skills/cities was not installed by planish; --force"), "{told}");
    assert_eq!(place.told(), ["-", "X"], "nothing is changed anywhere");
    assert_eq!(changes(&place.install("A", true).unwrap()), ["installed", "replaced"]);
    place.roll_back(false).unwrap();
    assert_eq!(place.told(), ["-", "X"]);

    place.install("A", true).unwrap();
    fs::write(place.path(PLACES[0]).join("SKILL.md"), "mine").unwrap();
    fs::write(place.path(PLACES[1]).join("more.md"), "mine").unwrap();
    for told in [place.install("B", false), place.uninstall(false), place.roll_back(false)] {
        let told = told.unwrap_err().to_string();
        assert_eq!(told.matches("was changed since planish put it there").count(), 2, "{told}");
    }
    assert_eq!(text_at(&place.path(PLACES[0])), "half mine");
    let forced = place.install("B", true).unwrap();
    assert_eq!(place.told(), ["B", "B"]);
    let backup = place.path(forced[1].backup.as_ref().unwrap());
    assert_eq!(fs::read_to_string(backup.join("more.md")).unwrap(), "mine");
    place.roll_back(false).unwrap();
    assert_eq!(fs::read_to_string(place.path(PLACES[0]).join("SKILL.md")).unwrap(), "mine");
}

#[test]
fn equal_content_that_lies_there_already_is_taken_over() {
    let place = Place::new();
    package("A").write_at(&place.path(PLACES[0]));
    assert_eq!(changes(&place.install("A", false).unwrap()), ["unchanged", "installed"]);
    place.install("B", false).unwrap();
    place.roll_back(false).unwrap();
    assert_eq!(place.told(), ["A", "A"]);
}

#[test]
fn links_are_refused_and_never_followed() {
    let elsewhere = tempfile::tempdir().unwrap();
    package("X").write_at(&elsewhere.path().join("cities"));
    for (link, target) in [
        (PLACES[1], elsewhere.path().join("cities")),
        (".claude/skills", elsewhere.path().to_owned()),
        (".claude", elsewhere.path().to_owned()),
        (PLACES[1], elsewhere.path().join("gone")),
    ] {
        let place = Place::new();
        fs::create_dir_all(place.path(link).parent().unwrap()).unwrap();
        symlink(&target, place.path(link)).unwrap();
        let told = place.install("A", false).unwrap_err().to_string();
        assert!(told.contains(&format!("{link} is a symbolic link")), "{told}");
        assert!(
            !place.path(".agents").exists() && !place.path(STORE).exists(),
            "nothing is changed anywhere"
        );
        let forced = place.install("A", true).unwrap();
        assert_eq!(place.told(), ["A", "A"]);
        assert!(!place.path(link).is_symlink());
        if link != PLACES[1] {
            let expected = (link.to_owned(), target.display().to_string());
            assert_eq!(forced[1].link, Some(expected));
        }
        let kept = place.store().into_iter().filter(|file| place.path(STORE).join(file).is_symlink());
        assert_eq!(kept.count(), 1, "the link is kept: {:?}", place.store());
        if link == PLACES[1] {
            place.roll_back(false).unwrap();
            assert_eq!(fs::read_link(place.path(link)).unwrap(), target);
        }
    }
    assert_eq!(text_at(&elsewhere.path().join("cities")), "X", "what the links lead to is untouched");
    for inside in ["", "/skills", "/skills/claude", "/skills/cities.json", "/skills/.lock"] {
        let (store, link) = (Place::new(), format!(".planish{inside}"));
        fs::create_dir_all(store.path(&link).parent().unwrap()).unwrap();
        symlink(elsewhere.path(), store.path(&link)).unwrap();
        let told = store.install("A", true).unwrap_err().to_string();
        assert!(
            told.contains(&format!("{link} is a symbolic link, which is not followed; remove it")),
            "{told}"
        );
        assert_eq!(store.told(), ["-", "-"]);
    }
    let behind = Place::new();
    behind.install("A", false).unwrap();
    fs::rename(behind.path(".claude"), behind.path("real")).unwrap();
    symlink(behind.path("real"), behind.path(".claude")).unwrap();
    for refused in [behind.uninstall(true), behind.roll_back(true)] {
        assert!(refused.unwrap_err().to_string().contains(".claude is a symbolic link"));
    }
    assert_eq!(text_at(&behind.path("real/skills/cities")), "A");
}

#[test]
fn a_file_in_the_way_is_named() {
    let place = Place::new();
    fs::write(place.path(".claude"), "x").unwrap();
    let told = place.install("A", true).unwrap_err().to_string();
    assert!(told.contains(".claude is no folder"), "{told}");
    assert!(!place.path(".agents").exists());
}

#[test]
fn a_rehearsal_changes_nothing() {
    let place = Place::new();
    let rehearse = |text: &str| {
        place
            .site
            .install(&name(), &package(text), &Client::ALWAYS, Mode::Rehearsal { force: false })
            .unwrap()
    };
    assert_eq!(changes(&rehearse("A")), ["installed"; 2]);
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0);
    place.install("A", false).unwrap();
    let before = snapshot(place.dir.path());
    assert_eq!(changes(&rehearse("B")), ["replaced"; 2]);
    let undo = place.site.roll_back(&name(), Mode::Rehearsal { force: false }).unwrap();
    assert_eq!(changes(&undo), ["removed"; 2]);
    assert_eq!(snapshot(place.dir.path()), before);
}

#[test]
fn a_backup_that_was_touched_is_not_brought_back() {
    let place = Place::new();
    place.install("A", false).unwrap();
    let outcome = place.install("B", false).unwrap().remove(0);
    let backup = place.path(outcome.backup.as_ref().unwrap());
    fs::write(backup.join("SKILL.md"), "other").unwrap();
    let told = place.roll_back(true).unwrap_err().to_string();
    assert!(told.contains("is gone or was changed"), "{told}");
    assert_eq!(place.told(), ["B", "B"]);
}

#[test]
fn one_planish_at_a_time() {
    let place = Place::new();
    place.install("A", false).unwrap();
    let _lock = moves::lock(&place.path(STORE), place.dir.path()).unwrap();
    let told = place.install("B", false).unwrap_err().to_string();
    assert!(told.contains("another planish"), "{told}");
    assert_eq!(place.told(), ["A", "A"]);
}

#[test]
fn a_receipt_that_leads_elsewhere_is_refused() {
    let place = Place::new();
    place.install("A", false).unwrap();
    let path = place.path(STORE).join("cities.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        (PLACES[0], ".git/hooks"),
        (PLACES[0], ".agents/skills/other"),
        ("\"name\": \"cities\"", "\"name\": \"towns\""),
        (PLACES[0], "../out"),
        (PLACES[0], "/etc/x"),
        ("\"agents\"", "\"../../x\""),
        ("\"format\": 1", "\"format\": 9"),
        ("{", "["),
    ] {
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        assert!(matches!(place.uninstall(true), Err(InstallError::Receipt { .. })), "{to}");
        assert_eq!(place.told(), ["A", "A"]);
    }
}

/// Every path below `folder` with its bytes or link.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match fs::symlink_metadata(&path).unwrap() {
                kind if kind.is_symlink() => {
                    let target = fs::read_link(&path).unwrap();
                    found.insert(path, target.display().to_string().into_bytes());
                }
                kind if kind.is_dir() => {
                    found.insert(path.clone(), Vec::new());
                    open.push(path);
                }
                _ => {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

impl Package {
    fn write_at(&self, folder: &Path) {
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        self.write(folder, &mut || Ok(())).unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Install(&'static str),
    Uninstall,
    RollBack,
}

/// Does `deed` and stops it before its `at`-th step; `true` when it came to its end.
fn crash(place: &Place, deed: Deed, at: usize) -> bool {
    let mut left = at;
    let mut step = || match left {
        0 => Err(StoreError::io("write", Path::new("x"))(io::Error::other("stopped"))),
        _ => {
            left -= 1;
            Ok(())
        }
    };
    let mode = Mode::Real { force: true, step: &mut step };
    let outcome = match deed {
        Deed::Install(text) => place.site.install(&name(), &package(text), &Client::ALWAYS, mode),
        Deed::Uninstall => place.site.uninstall(&name(), mode),
        Deed::RollBack => place.site.roll_back(&name(), mode),
    };
    match outcome {
        Ok(_) => true,
        Err(error) => {
            assert!(error.to_string().contains("stopped"), "{error}");
            false
        }
    }
}

/// Stops each deed before each of its steps: every place holds the old or the new, and the next command clears up.
#[test]
fn a_stop_at_any_step_leaves_the_old_or_the_new() {
    let linked = |place: &Place| {
        fs::create_dir_all(place.path("real/cities")).unwrap();
        fs::create_dir(place.path(".claude")).unwrap();
        symlink(place.path("real"), place.path(".claude/skills")).unwrap();
    };
    type Setup<'a> = &'a dyn Fn(&Place);
    let cases: [(Setup, Deed, &str, &str); 6] = [
        (&|_| {}, Deed::Install("A"), "-", "A"),
        (&|place| drop(place.install("A", false)), Deed::Install("B"), "A", "B"),
        (&|place| drop(place.install("A", false)), Deed::Uninstall, "A", "-"),
        (
            &|place| {
                place.install("A", false).unwrap();
                place.install("B", false).unwrap();
            },
            Deed::RollBack,
            "B",
            "A",
        ),
        (&|place| drop(place.install("A", false)), Deed::RollBack, "A", "-"),
        (&linked, Deed::Install("A"), "", "A"),
    ];
    for (setup, deed, old, new) in cases {
        let mut steps = 0;
        let mut seen = Vec::new();
        loop {
            let place = Place::new();
            setup(&place);
            let before = place.told();
            let ended = crash(&place, deed, steps);
            let after = place.told();
            for (was, is) in before.iter().zip(&after) {
                let link_stands = old.is_empty() && place.path(".claude/skills").is_symlink();
                assert!(
                    is == was || is == new || link_stands,
                    "{deed:?} stopped at {steps}: {was} became {is}"
                );
            }
            seen.push(after.clone());
            if ended {
                assert_eq!(after, [new, new]);
                break;
            }
            // The same deed again, without a stop: it ends as if there had been none, and no scraps are left.
            match (
                deed,
                place.site.install(
                    &name(),
                    &package("C"),
                    &Client::ALWAYS,
                    Mode::Real { force: old.is_empty(), step: &mut || Ok(()) },
                ),
            ) {
                (_, Ok(_)) => assert_eq!(place.told(), ["C", "C"]),
                (deed, Err(error)) => panic!("{deed:?} stopped at {steps}: {error}"),
            }
            let scraps: Vec<_> = place.store().into_iter().filter(|file| !file.contains(".bak-")).collect();
            assert_eq!(scraps, Vec::<String>::new(), "{deed:?} stopped at {steps}");
            place.roll_back(false).unwrap();
            if !old.is_empty() {
                assert_eq!(place.told(), after, "{deed:?} stopped at {steps}: what stood then comes back");
            }
            steps += 1;
        }
        let mixed = seen.iter().filter(|told| told[0] != told[1]).count();
        assert!(steps > 5 && mixed > 0, "{deed:?}: {steps} steps, {mixed} of them between the two places");
    }
}

#[derive(Clone, Debug)]
struct Turn {
    deed: Deed,
    stop: Option<usize>,
}

fn turns() -> impl proptest::strategy::Strategy<Value = Vec<Turn>> {
    use proptest::prelude::*;
    let deed = prop_oneof![
        3 => prop::sample::select(vec!["A", "B", "C"]).prop_map(Deed::Install),
        1 => Just(Deed::Uninstall),
        2 => Just(Deed::RollBack),
    ];
    let turn = (deed, prop::option::of(0_usize..24)).prop_map(|(deed, stop)| Turn { deed, stop });
    prop::collection::vec(turn, 1..6)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

    /// Whatever is done and wherever it is stopped: places are never half, and a rollback gives back what an install found.
    #[test]
    fn installs_are_undone_whatever_happened_before(turns in turns()) {
        let place = Place::new();
        for turn in turns {
            let before = place.told();
            let stop = turn.stop.unwrap_or(usize::MAX);
            let nothing_to_do = match turn.deed {
                Deed::Install(_) => false,
                Deed::Uninstall => place.site.uninstall(&name(), Mode::Rehearsal { force: false }).is_err(),
                Deed::RollBack => place.site.roll_back(&name(), Mode::Rehearsal { force: false }).is_err(),
            };
            if nothing_to_do {
                continue;
            }
            crash(&place, turn.deed, stop);
            for (was, is) in before.iter().zip(place.told()) {
                proptest::prop_assert!(["-", "A", "B", "C"].contains(&is.as_str()), "{} became {}", was, is);
            }
        }
        let before = place.told();
        place.install("Z", false).unwrap();
        proptest::prop_assert_eq!(place.told(), vec!["Z", "Z"]);
        place.roll_back(false).unwrap();
        proptest::prop_assert_eq!(place.told(), before);
    }
}
