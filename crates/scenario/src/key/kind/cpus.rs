//! Sets of processors.

use knee_units::cpus::Cpus;

use super::{Given, Kind};
use crate::key::error::Problem;
use crate::key::value::Value;

/// A list of processors, `any` for all of them. Held as [`Cpus`], which names none then.
pub struct CpuList;

/// Processors in a mask, in hexadecimal. Held as [`Cpus`].
pub struct CpuMask;

const ANY: &str = "any";

impl Kind for CpuList {
    fn forms(&self) -> String {
        format!("a list of processors such as \"0\" or \"0-1,4\", in quotes, or \"{ANY}\"")
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let cpus = match given.text(self)? {
            ANY => Some(Cpus::default()),
            text => Cpus::of_list(text),
        };
        cpus.map(Value::of).ok_or_else(|| given.wrong(self, ""))
    }

    fn show(&self, value: &Value) -> String {
        let cpus = value.expect::<Cpus>();
        match cpus.numbers() {
            [] => ANY.into(),
            _ => cpus.list(),
        }
    }
}

impl Kind for CpuMask {
    fn forms(&self) -> String {
        "a mask of processors in hexadecimal such as \"3\" or \"ff,00000000\", in quotes, as sysfs writes it".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let cpus = Cpus::of_mask(given.text(self)?);
        cpus.map(Value::of).ok_or_else(|| given.wrong(self, ""))
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<Cpus>().mask()
    }
}
