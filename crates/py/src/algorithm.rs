//! One connection's copy of an algorithm, for who shows it ACKs of his own.

use std::sync::Arc;

use knee_cc::{CcIn, CcOut, Instance, Op, find};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{crash, errors};

#[pyclass(module = "tcpknee._core")]
pub struct Algorithm {
    instance: Instance,
    /// What the ops are shown; a field that nobody set is 0.
    stack: CcIn,
}

#[pymethods]
impl Algorithm {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Algorithm> {
        let unknown = || {
            let known: Vec<_> = knee_cc::algorithms().iter().map(|a| a.name()).collect();
            let known = known.join(", ");
            errors::usage(
                py,
                &format!("got the algorithm \"{name}\"; expected one of {known}."),
            )
        };
        let instance = Instance::new(find(name).ok_or_else(unknown)?, &[])
            .expect("defaults are within bounds");
        Ok(Algorithm {
            instance,
            stack: CcIn::default(),
        })
    }

    fn call<'py>(
        &mut self,
        py: Python<'py>,
        op: &str,
        given: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let Some(op) = Op::ALL.into_iter().find(|known| known.name() == op) else {
            let known = Op::ALL.map(Op::name).join(", ");
            return Err(errors::usage(
                py,
                &format!("got the op \"{op}\"; expected one of {known}."),
            ));
        };
        for (name, value) in given {
            let name: String = name.extract()?;
            if !self.stack.set(&name, value.extract()?) {
                return Err(errors::usage(
                    py,
                    &format!("got the field \"{name}\"; expected one of struct cc_in in cc/cc.h."),
                ));
            }
        }
        let s = &mut self.stack;
        let mut out = CcOut {
            pacing_rate: s.pacing_rate,
            pacing_status: s.pacing_status,
            snd_cwnd: s.snd_cwnd,
            snd_cwnd_cnt: s.snd_cwnd_cnt,
            snd_ssthresh: s.snd_ssthresh,
            app_limited: s.app_limited,
            ..CcOut::default()
        };
        self.instance.call(op, s, &mut out);
        s.pacing_rate = out.pacing_rate;
        s.pacing_status = out.pacing_status;
        s.snd_cwnd = out.snd_cwnd;
        s.snd_cwnd_cnt = out.snd_cwnd_cnt;
        s.snd_ssthresh = out.snd_ssthresh;
        s.app_limited = out.app_limited;
        let told = PyDict::new(py);
        told.set_item("pacing_rate", out.pacing_rate)?;
        told.set_item("snd_cwnd", out.snd_cwnd)?;
        told.set_item("snd_cwnd_cnt", out.snd_cwnd_cnt)?;
        told.set_item("snd_ssthresh", out.snd_ssthresh)?;
        told.set_item("ret", out.ret)?;
        Ok(told)
    }
}

/// Makes one call of the algorithm of a file, of what `read_call` gives, and returns as JSON what the op may change and what
/// it made of the state. `guard_process` says what becomes of a call that goes wrong.
#[pyfunction]
pub fn play_call(py: Python<'_>, name: &str, digest: &str, call: &str) -> PyResult<String> {
    let wrong = |what: &str| {
        errors::usage(
            py,
            &format!("got a call {what}; expected one that tcpknee wrote."),
        )
    };
    let call: serde_json::Value =
        serde_json::from_str(call).map_err(|_| wrong("that is no JSON"))?;
    let algorithm = knee_cc::file::find(name, digest)
        .ok_or_else(|| wrong("of an algorithm that is not loaded"))?;
    let op = call["op"].as_str().unwrap_or_default();
    let op = Op::ALL
        .into_iter()
        .find(|known| known.name() == op)
        .ok_or_else(|| wrong("without a known op"))?;
    let (mut input, mut out) = (CcIn::default(), CcOut::default());
    for (block, set) in [("in", true), ("out", false)] {
        for (name, value) in call[block]
            .as_object()
            .ok_or_else(|| wrong("without its fields"))?
        {
            let value = value
                .as_i64()
                .map(i128::from)
                .or(value.as_u64().map(i128::from));
            let is_set = value.is_some_and(|value| {
                if set {
                    input.set(name, value)
                } else {
                    out.set(name, value)
                }
            });
            if !is_set {
                return Err(wrong(&format!("with another field \"{name}\"")));
            }
        }
    }
    let state = call["state"].as_str().unwrap_or_default();
    if state.len() != 2 * algorithm.state_bytes()
        || !state.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return Err(wrong("with a state of another size"));
    }
    let under_way = Arc::default();
    let made = Instance::new(algorithm, &[]).expect("defaults are within bounds");
    let mut made = made.telling(&under_way);
    for (at, word) in made.state_mut().iter_mut().enumerate() {
        let mut bytes = [0; 8];
        for (byte, text) in bytes
            .iter_mut()
            .zip(state.as_bytes()[(16 * at).min(state.len())..].chunks(2))
        {
            let text = std::str::from_utf8(text).expect("digits");
            *byte = u8::from_str_radix(text, 16).expect("hexadecimal digits");
        }
        *word = u64::from_ne_bytes(bytes);
    }
    let _watched = crash::watch_calls(String::new(), under_way, 0);
    made.call(op, &input, &mut out);
    let bytes = made.state().iter().flat_map(|word| word.to_ne_bytes());
    let state: String = bytes
        .take(algorithm.state_bytes())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let told = serde_json::json!({"out": crash::fields(CcOut::NAMES, |name| out.get(name)), "state": state});
    Ok(told.to_string())
}
