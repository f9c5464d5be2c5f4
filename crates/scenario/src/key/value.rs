//! A value of a key. Its kind decides the type.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value as its kind reads it.
#[derive(Clone)]
pub struct Value(Arc<dyn Held>);

/// A type that values can have.
pub trait Held: Any + fmt::Debug + Send + Sync {
    fn is(&self, other: &dyn Any) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Held for T {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

impl Value {
    pub fn of(held: impl Held) -> Value {
        Value(Arc::new(held))
    }

    /// `None`: it is of another type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let held: &dyn Any = &*self.0;
        held.downcast_ref()
    }

    /// Of a type that the kind guarantees.
    ///
    /// # Panics
    /// It is of another.
    pub fn expect<T: 'static>(&self) -> &T {
        let held = self.get();
        held.unwrap_or_else(|| panic!("{self:?} is not as the registry says"))
    }

    /// A text or a name.
    pub fn text(&self) -> Option<&str> {
        let name = || self.get::<&str>().copied();
        self.get::<String>().map(String::as_str).or_else(name)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.0.is(&*other.0)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
