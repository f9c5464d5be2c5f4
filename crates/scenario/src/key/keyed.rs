//! Structs whose fields are keys of a table: each key is declared once, with the field that has its value.

use knee_tables::KeptSamples;
use knee_units::cpus::Cpus;
use knee_units::{Nanos, Rate};

use crate::key::Key;
use crate::key::names::Kernel;
use crate::key::profile::Profile;
use crate::key::sizes::SizeSpec;
use crate::key::value::Value;
use crate::key::values::Values;

/// A type that a key's value has in a cell.
pub trait Field: Sized {
    /// From the values of its keys, of which most types have one. `None`: they are no values of this type.
    fn read(values: &[Option<&Value>]) -> Option<Self>;

    /// What its keys have; nothing where there is nothing to show.
    fn values(&self) -> Vec<Value>;
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
    let values = field.values();
    let with_key = |(key, value): (&Key, &Value)| Shown::Key(key.name, key.kind.show(value));
    keys.iter().zip(&values).map(with_key).collect()
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

/// Types that are those of the values themselves.
macro_rules! alike {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(values: &[Option<&Value>]) -> Option<$type> {
                match values {
                    [Some(value)] => value.get().cloned(),
                    _ => None,
                }
            }

            fn values(&self) -> Vec<Value> {
                vec![Value::of(self.clone())]
            }
        }
    )*};
}
alike!(
    bool,
    u64,
    f64,
    Nanos,
    Cpus,
    Kernel,
    SizeSpec,
    String,
    Option<u64>,
    Option<Rate>,
    Option<Box<Profile>>
);

/// Whole numbers that are smaller than the value's type.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(values: &[Option<&Value>]) -> Option<$type> {
                u64::read(values)?.try_into().ok()
            }

            fn values(&self) -> Vec<Value> {
                vec![Value::of(u64::from(*self))]
            }
        }
    )*};
}
numbers!(u8, u32);

impl Field for KeptSamples {
    fn read(values: &[Option<&Value>]) -> Option<KeptSamples> {
        match values {
            [None] => Some(KeptSamples::ALL),
            [Some(value)] => value.get().copied(),
            _ => None,
        }
    }

    fn values(&self) -> Vec<Value> {
        let chosen = self.chosen().map(|_| Value::of(*self));
        chosen.into_iter().collect()
    }
}

/// A name of which `default` stands for none.
impl Field for Option<&'static str> {
    fn read(values: &[Option<&Value>]) -> Option<Option<&'static str>> {
        match values {
            [Some(value)] => Some(value.get().copied().filter(|name| *name != DEFAULT)),
            _ => None,
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::of(self.unwrap_or(DEFAULT))]
    }
}

const DEFAULT: &str = "default";

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
                let [Some(value)] = values else { return None };
                match *value.get::<&str>()? {
                    $( $name => Some($type::$variant), )*
                    _ => None,
                }
            }

            fn values(&self) -> Vec<$crate::key::value::Value> {
                vec![$crate::key::value::Value::of(self.name())]
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

    fn values(&self) -> Vec<Value> {
        self.0.values()
    }
}

impl Choice for Bytes {}

impl Choice for Kernel {}

impl Choice for String {}

impl<T: Choice> Field for Option<T> {
    fn read(values: &[Option<&Value>]) -> Option<Option<T>> {
        match values {
            [None] => Some(None),
            _ => T::read(values).map(Some),
        }
    }

    fn values(&self) -> Vec<Value> {
        self.iter().flat_map(Field::values).collect()
    }
}

/// Of several keys of a kind, such as least, initial and largest size.
impl<T: Field, const N: usize> Field for [T; N] {
    fn read(values: &[Option<&Value>]) -> Option<[T; N]> {
        let each: Option<Vec<T>> = values.iter().map(|value| T::read(&[*value])).collect();
        each?.try_into().ok()
    }

    fn values(&self) -> Vec<Value> {
        self.iter().flat_map(Field::values).collect()
    }
}
