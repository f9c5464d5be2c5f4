//! Structs whose fields are keys of a table: each key is declared once, with the field that has its value.

use knee_tables::KeptSamples;
use knee_units::cpus::Cpus;
use knee_units::{Nanos, Rate};

use crate::key::names::Kernel;
use crate::key::profile::{self, Profile};
use crate::key::sizes::SizeSpec;
use crate::key::value::{ANY, Value};
use crate::key::values::Values;
use crate::key::{Key, Kind};

/// A type that a key's value has in a cell.
pub trait Field: Sized {
    /// From the values of its keys, of which most types have one. `None`: they are no values of this type.
    fn read(values: &[Option<&Value>]) -> Option<Self>;

    /// What the keys have, as a scenario writes it but without quotes; nothing where there is nothing to show.
    fn shown(&self, kind: &Kind) -> Vec<String>;
}

/// A line of a description as the thing itself tells it.
pub enum Shown {
    /// A key of the table that the thing stands in, and its value as a scenario writes it, but without quotes.
    Key(&'static str, String),
    /// What follows from keys: a name with its unit last.
    Derived {
        name: &'static str,
        value: String,
        doc: &'static str,
    },
    /// The place of a field that has no key of its own.
    Given(&'static str),
}

impl dyn Values + '_ {
    /// The value of a field with these keys, of the kind that they say.
    pub fn field<T: Field>(&self, keys: &[Key]) -> T {
        let values: Vec<Option<&Value>> = keys.iter().map(|key| self.value(key.name)).collect();
        T::read(&values).unwrap_or_else(|| {
            let path = self.path_of(keys[0].name);
            panic!("{path} is not as the registry says: {values:?}")
        })
    }
}

/// The lines of a description that show this field of these keys.
pub fn shown<T: Field>(keys: &'static [Key], field: &T) -> Vec<Shown> {
    let values = field.shown(&keys[0].kind).into_iter();
    let with_key = |(key, value): (&Key, String)| Shown::Key(key.name, value);
    keys.iter().zip(values).map(with_key).collect()
}

/// Declares a struct whose fields each have a key, or the keys of a list. Fields of a block `given` have none:
/// `resolve` decides them. For its keys the struct has
///
/// - `KEYS`, in their order;
/// - `read`, which takes the values from a table and what is given as arguments;
/// - `lines`, which describe it.
///
/// So a further key needs nothing but its field here and somebody who uses that.
macro_rules! keyed {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(given {
                    $( $(#[$given_meta:meta])* pub $given:ident: $given_type:ty, )*
                })?
                $( $(#[$field_meta:meta])* pub $field:ident: $type:ty = $($key:expr),+ )?
            ;)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $(
                $( $( $(#[$given_meta])* pub $given: $given_type, )* )?
                $( $(#[$field_meta])* pub $field: $type, )?
            )*
        }

        impl $name {
            /// The keys of its fields, in their order.
            pub(crate) const KEYS: &'static [$crate::key::Key] = &[ $( $( $($key,)+ )? )* ];

            /// With what a table says of its keys.
            #[allow(clippy::too_many_arguments, reason = "each has the name of its field")]
            pub(crate) fn read(
                from: &dyn $crate::key::values::Values,
                $( $( $( $given: $given_type, )* )? )*
            ) -> $name {
                $name {
                    $(
                        $( $( $given, )* )?
                        $( $field: {
                            const KEYS: &[$crate::key::Key] = &[$($key),+];
                            from.field(KEYS)
                        }, )?
                    )*
                }
            }

            /// Its keys with their values, in the order of the fields.
            pub(crate) fn lines(&self) -> Vec<$crate::key::keyed::Shown> {
                let of_fields = [
                    $(
                        $( $( vec![$crate::key::keyed::Shown::Given(stringify!($given))], )* )?
                        $( {
                            const KEYS: &[$crate::key::Key] = &[$($key),+];
                            $crate::key::keyed::shown(KEYS, &self.$field)
                        }, )?
                    )*
                ];
                of_fields.into_iter().flatten().collect()
            }
        }
    };
}
pub(crate) use keyed;

impl Field for bool {
    fn read(values: &[Option<&Value>]) -> Option<bool> {
        match values {
            [Some(Value::Flag(flag))] => Some(*flag),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl Field for Cpus {
    fn read(values: &[Option<&Value>]) -> Option<Cpus> {
        match values {
            [Some(Value::Cpus(cpus))] => Some(cpus.clone()),
            _ => None,
        }
    }

    fn shown(&self, kind: &Kind) -> Vec<String> {
        vec![match kind {
            Kind::CpuMask => self.mask(),
            _ if self.numbers().is_empty() => ANY.into(),
            _ => self.list(),
        }]
    }
}

impl Field for Nanos {
    fn read(values: &[Option<&Value>]) -> Option<Nanos> {
        match values {
            [Some(Value::Duration(time))] => Some(*time),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.to_string()]
    }
}

/// Whole numbers: counts, and bytes.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(values: &[Option<&Value>]) -> Option<$type> {
                match values {
                    [Some(Value::Count(n) | Value::Bytes(n))] => (*n).try_into().ok(),
                    _ => None,
                }
            }

            fn shown(&self, kind: &Kind) -> Vec<String> {
                vec![match kind {
                    Kind::Bytes { .. } => format!("{self}B"),
                    _ => self.to_string(),
                }]
            }
        }
    )*};
}
numbers!(u8, u32, u64);

/// A share.
impl Field for f64 {
    fn read(values: &[Option<&Value>]) -> Option<f64> {
        match values {
            [Some(Value::Share(share))] => Some(*share),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        // As a text has it: 0.07 × 100 is 7.000000000000001.
        vec![format!("{}%", (self * 1e14).round() / 1e12)]
    }
}

/// A count that may be unlimited.
impl Field for Option<u64> {
    fn read(values: &[Option<&Value>]) -> Option<Option<u64>> {
        match values {
            [Some(Value::Count(n))] => Some(Some(*n)),
            [Some(Value::NoLimit)] => Some(None),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.map_or("unlimited".into(), |n| n.to_string())]
    }
}

impl Field for KeptSamples {
    fn read(values: &[Option<&Value>]) -> Option<KeptSamples> {
        match values {
            [None] => Some(KeptSamples::ALL),
            [Some(Value::Samples(kept))] => Some(*kept),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        let shown = |names: Vec<&str>| format!("[{}]", names.join(", "));
        self.chosen().map(shown).into_iter().collect()
    }
}

impl Field for Option<Rate> {
    fn read(values: &[Option<&Value>]) -> Option<Option<Rate>> {
        match values {
            [Some(Value::Rate(rate))] => Some(*rate),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.map_or("unlimited".into(), |rate| rate.to_string())]
    }
}

impl Field for String {
    fn read(values: &[Option<&Value>]) -> Option<String> {
        match values {
            [Some(Value::Text(text))] => Some(text.clone()),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.clone()]
    }
}

/// A text that the file need not have, or a name of which `default` stands for none.
impl Field for Option<String> {
    fn read(values: &[Option<&Value>]) -> Option<Option<String>> {
        match values {
            [None | Some(Value::Name(DEFAULT))] => Some(None),
            [Some(Value::Name(name))] => Some(Some((*name).into())),
            [Some(Value::Text(text))] => Some(Some(text.clone())),
            _ => None,
        }
    }

    fn shown(&self, kind: &Kind) -> Vec<String> {
        match (self, kind) {
            (Some(text), _) => vec![text.clone()],
            (None, Kind::Name(..)) => vec![DEFAULT.into()],
            (None, _) => Vec::new(),
        }
    }
}

const DEFAULT: &str = "default";

impl Field for Option<Box<Profile>> {
    fn read(values: &[Option<&Value>]) -> Option<Option<Box<Profile>>> {
        match values {
            [Some(Value::Costs(profile))] => Some(profile.clone()),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        let shown = |profile: &Profile| profile.to_string();
        vec![self.as_deref().map_or(profile::NONE.into(), shown)]
    }
}

impl Field for SizeSpec {
    fn read(values: &[Option<&Value>]) -> Option<SizeSpec> {
        match values {
            [Some(Value::Sizes(sizes))] => Some(sizes.clone()),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.to_string()]
    }
}

/// Declares a type for one of a few names: a variant beside the name that scenarios write.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $name:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        pub enum $type {
            $( $(#[$variant_meta])* $variant, )*
        }

        impl $type {
            /// As scenarios write them, in their order.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// As scenarios write it.
            pub fn name(self) -> &'static str {
                match self {
                    $( $type::$variant => $name, )*
                }
            }
        }

        impl $crate::key::keyed::Field for $type {
            fn read(values: &[Option<&$crate::key::value::Value>]) -> Option<$type> {
                match values {
                    $( [Some($crate::key::value::Value::Name($name))] => Some($type::$variant), )*
                    _ => None,
                }
            }

            fn shown(&self, _kind: &$crate::key::Kind) -> Vec<String> {
                vec![self.name().into()]
            }
        }

        impl $crate::key::keyed::Choice for $type {}
    };
}
pub(crate) use named;

/// A value that the file need not give.
pub trait Choice: Field {}

impl Choice for bool {}

/// A size that the file need not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Bytes(pub u64);

impl Field for Bytes {
    fn read(values: &[Option<&Value>]) -> Option<Bytes> {
        u64::read(values).map(Bytes)
    }

    fn shown(&self, kind: &Kind) -> Vec<String> {
        self.0.shown(kind)
    }
}

impl Choice for Bytes {}

impl Field for Kernel {
    fn read(values: &[Option<&Value>]) -> Option<Kernel> {
        match values {
            [Some(Value::Kernel(kernel))] => Some(kernel.clone()),
            _ => None,
        }
    }

    fn shown(&self, _kind: &Kind) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl Choice for Kernel {}

impl<T: Choice> Field for Option<T> {
    fn read(values: &[Option<&Value>]) -> Option<Option<T>> {
        match values {
            [None] => Some(None),
            _ => T::read(values).map(Some),
        }
    }

    fn shown(&self, kind: &Kind) -> Vec<String> {
        self.iter().flat_map(|choice| choice.shown(kind)).collect()
    }
}

/// Of several keys of a kind, such as least, initial and largest size.
impl<T: Field, const N: usize> Field for [T; N] {
    fn read(values: &[Option<&Value>]) -> Option<[T; N]> {
        let each: Option<Vec<T>> = values.iter().map(|value| T::read(&[*value])).collect();
        each?.try_into().ok()
    }

    fn shown(&self, kind: &Kind) -> Vec<String> {
        self.iter().flat_map(|one| one.shown(kind)).collect()
    }
}
