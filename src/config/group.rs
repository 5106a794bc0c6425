//! Two macros for settings of which there are many: a group of fields with their registry rows, and a choice of words.
//! Declares nothing itself.

/// A struct of settings together with its registry rows, one list per section that holds the group. Each line is a
/// field, its default, its kind, its meaning, and `changes_on_resume` if no finished result depends on it; each block
/// says who uses its fields; `with` takes in another group.
macro_rules! group {
    ($(#[$meta:meta])* $name:ident in [$($rows:ident $section:literal),+] $body:tt
        $(with $part:ident: $part_type:ty;)*) => {
        group!(@settings [$(#[$meta])*] $name $body $($part: $part_type;)*);
        $(group!(@rows $rows $section $body);)+
    };
    (@settings [$(#[$meta:meta])*] $name:ident {$(for $used_by:ident {
        $($field:ident: $type:ty = $default:expr, $kind:expr, $doc:literal $($may:ident)?;)+
    })+} $($part:ident: $part_type:ty;)*) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[doc = $doc] pub $field: $type,)+)+
            $(#[serde(flatten)] pub $part: $part_type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($($field: $default,)+)+ $($part: <$part_type>::default(),)* }
            }
        }
    };
    (@rows $rows:ident $section:literal {$(for $used_by:ident {
        $($field:ident: $type:ty = $default:expr, $kind:expr, $doc:literal $($may:ident)?;)+
    })+}) => {
        pub const $rows: &[Key] = &[
            $($(key(concat!($section, ".", stringify!($field)), $kind, $doc).used_by($used_by)$(.$may())?,)+)+
        ];
    };
}

/// An enum of configuration words, with the list of them for the registry. The first is the default.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $first:ident = $first_word:literal, $($variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            #[default]
            #[serde(rename = $first_word)]
            $first,
            $(#[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const WORDS: &[&str] = &[$first_word, $($word),+];

            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $first_word => Some(Self::$first),
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// As it is written in a configuration.
            pub fn word(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub(super) use {group, words};
