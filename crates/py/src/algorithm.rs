//! One connection's copy of an algorithm, for who shows it ACKs of his own.

use knee_cc::{CcIn, CcOut, Instance, Op, find};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

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
            if !set(&mut self.stack, &name, &value)? {
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

macro_rules! setter {
    ($($field:ident)*) => {
        /// Sets a field by its name; false: there is none.
        fn set(stack: &mut CcIn, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
            match name {
                $(stringify!($field) => stack.$field = value.extract()?,)*
                _ => return Ok(false),
            }
            Ok(true)
        }
    };
}

setter! {
    now_us clock_ns wstamp_ns pacing_rate max_pacing_rate rs_interval_us rs_rtt_us rs_prior_mstamp_us ack_rtt_us jiffies
    hz lsndtime snd_cwnd snd_cwnd_cnt snd_cwnd_clamp snd_ssthresh prior_cwnd snd_una snd_nxt rcv_tsval rcv_tsecr
    packets_out sacked_out lost_out retrans_out max_packets_out delivered delivered_ce lost app_limited srtt_us min_rtt_us
    mss_bytes gso_max_bytes reordering pacing_status ca_state is_cwnd_limited random state event ack_flags acked
    ack_in_flight_bytes rs_prior_delivered rs_delivered rs_delivered_ce rs_acked_sacked rs_losses rs_prior_in_flight
    rs_snd_interval_us rs_rcv_interval_us rs_last_end_seq rs_is_app_limited rs_is_retrans rs_is_ack_delayed rs_has_tx
    rs_tx_in_flight rs_lost
}
