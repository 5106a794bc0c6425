//! What every theme must hold: completeness, contrast, colours that stay apart for colour-blind eyes, errors.

use ratatui::style::Color;

use super::*;
use crate::tui::colour::{contrast, linear};
use crate::tui::theme_file::{BUILT_IN, parse};

const DEPTHS: [Depth; 4] = [Depth::True, Depth::Ansi256, Depth::Ansi16, Depth::None];

/// Roles of words and numbers. The others are lines.
fn is_text(role: Role) -> bool {
    !matches!(role, Role::Border | Role::Focus | Role::Selection)
}

fn all() -> impl Iterator<Item = (&'static str, Stating)> {
    BUILT_IN.into_iter().map(|(name, _, _)| (name, built_in(name).unwrap()))
}

#[test]
fn every_theme_states_every_role_or_inherits_it() {
    for (name, _, text) in BUILT_IN {
        let stated =
            |role: Role| text.lines().any(|line| line.split_whitespace().next() == Some(role.name()));
        let inherits = text.contains("\ninherits = ");
        for role in Role::ALL {
            assert!(inherits || stated(role), "{name}: {} is missing", role.name());
        }
        assert_eq!(built_in(name).unwrap().name, name);
        assert!(text.contains("\nbackground = ") && text.contains("\nforeground = "), "{name}");
    }
}

#[test]
fn role_order_matches_its_table() {
    for (index, role) in Role::ALL.into_iter().enumerate() {
        assert_eq!(role as usize, index);
    }
}

#[test]
fn words_are_readable_on_the_background_of_their_theme() {
    for (name, stating) in all() {
        let selection = stating.look(Role::Selection).bg.full.unwrap_or(stating.background);
        for role in Role::ALL {
            let look = stating.look(role);
            let (fg, bg) = (look.fg.full, look.bg.full.unwrap_or(stating.background));
            let least = if is_text(role) { 4.5 } else { 2.0 };
            if let Some(fg) = fg {
                assert!(contrast(fg, bg) >= least, "{name} {role:?}: {:.2}", contrast(fg, bg));
                let selected = contrast(fg, selection);
                assert!(
                    look.bg.full.is_some() || !is_text(role) || selected >= 3.0,
                    "{name} {role:?} selected"
                );
            }
        }
        assert!(contrast(stating.foreground, stating.background) >= 7.0, "{name}");
        assert!(contrast(stating.foreground, selection) >= 4.5, "{name}: selected words");
    }
}

#[test]
fn smaller_palettes_keep_good_and_bad_apart() {
    for (name, _) in all().filter(|(name, _)| *name != "mono") {
        for depth in [Depth::True, Depth::Ansi256, Depth::Ansi16] {
            let theme = Theme::named(name, depth).unwrap();
            for (one, other) in OPPOSED {
                assert!(theme.style(one).fg.is_some(), "{name} {one:?} {depth:?}");
                assert_ne!(theme.style(one).fg, theme.style(other).fg, "{name} {one:?} {depth:?}");
            }
        }
    }
}

#[test]
fn without_colour_meaning_is_kept_by_reverse_and_underline() {
    for (name, _) in all() {
        let theme = Theme::named(name, Depth::None).unwrap();
        for role in Role::ALL {
            assert_eq!((theme.style(role).fg, theme.style(role).bg), (None, None), "{name} {role:?}");
        }
        assert!(theme.style(Role::Selection).add_modifier.contains(Modifier::REVERSED), "{name}");
        assert!(theme.style(Role::AddedWord).add_modifier.contains(Modifier::UNDERLINED), "{name}");
    }
    for depth in DEPTHS {
        let mono = Theme::named("mono", depth).unwrap();
        assert!(Role::ALL.iter().all(|role| (mono.style(*role).fg, mono.style(*role).bg) == (None, None)));
    }
}

#[test]
fn a_users_theme_overrides_roles() {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), "inherits = \"light\"\n[roles]\ngood = { fg = \"#123456\" }\n").unwrap();
    let theme = Theme::load(file.path(), Depth::True).unwrap();
    assert_eq!(theme.style(Role::Good).fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
    assert_eq!(theme.style(Role::Bad), Theme::named("light", Depth::True).unwrap().style(Role::Bad));
    std::fs::write(file.path(), format!("inherits = \"{}\"\n", file.path().display())).unwrap();
    let error = Theme::load(file.path(), Depth::True).unwrap_err().to_string();
    assert!(error.contains(":1: inherits: themes inherit from each other in a circle"), "{error}");
}

#[test]
fn errors_of_a_theme_name_file_line_and_key() {
    let told = |text: &str| parse("own.toml", text, Some(Path::new("own.toml")), 0).unwrap_err().to_string();
    assert!(told("[roles]\ngood = { fg = \"mauve\" }").contains("own.toml:2: roles.good.fg: `mauve`"));
    assert!(told("[roles]\nglitter = {}").contains("roles.glitter: no such role"));
    assert!(told("[roles]\ngod = {}").contains("did you mean good?"));
    assert!(
        told("inherits = \"lihgt\"").contains("own.toml:1: inherits: no theme `lihgt`, did you mean light?")
    );
    assert!(told("[roles]\ngood = { bold = 1 }").contains("roles.good.bold"));
    assert!(told("colour = 1").contains("no such key"));
    assert!(Theme::named("drak", Depth::True).unwrap_err().to_string().contains("did you mean dark?"));
}

const OPPOSED: [(Role, Role); 2] = [(Role::Good, Role::Bad), (Role::Added, Role::Removed)];

/// Severe colour blindness in linear light (Machado, Oliveira and Fernandes 2009).
const PROTAN: [[f64; 3]; 3] =
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
const DEUTAN: [[f64; 3]; 3] =
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
const TRITAN: [[f64; 3]; 3] =
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]];

/// CIE L*a*b* of a colour as such eyes see it.
fn lab(colour: Rgb, eyes: &[[f64; 3]; 3]) -> [f64; 3] {
    let rgb = [linear(colour.0), linear(colour.1), linear(colour.2)];
    let seen = eyes.map(|row| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0));
    let [r, g, b] = seen;
    let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
    let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
    let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn difference(a: Rgb, b: Rgb, eyes: &[[f64; 3]; 3]) -> f64 {
    lab(a, eyes).iter().zip(lab(b, eyes)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn colour_blind_eyes_tell_good_from_bad() {
    for (name, eyes) in [("cb-blue-orange", &PROTAN), ("cb-blue-orange", &DEUTAN), ("cb-red-teal", &TRITAN)] {
        let stating = built_in(name).unwrap();
        let fg = |role| stating.look(role).fg.full.unwrap();
        for (one, other) in OPPOSED {
            let seen = difference(fg(one), fg(other), eyes);
            assert!(seen >= 40.0, "{name} {one:?}: {seen:.0}");
        }
        let word = |role| stating.look(role).bg.full.unwrap();
        let seen = difference(word(Role::AddedWord), word(Role::RemovedWord), eyes);
        assert!(seen >= 15.0, "{name} words: {seen:.0}");
    }
    // The measure finds fault where there is one.
    let dark = built_in("dark").unwrap();
    let fg = |role| dark.look(role).fg.full.unwrap();
    assert!(difference(fg(Role::Good), fg(Role::Bad), &PROTAN) < 40.0);
}
