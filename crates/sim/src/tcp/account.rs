//! What is told of an endpoint: the fields of `tcp_info`, and how its time was
//! spent.

use super::{CaState, Endpoint, HostConf, Limit, NEVER, State};

impl Endpoint {
    pub fn ca_state(&self) -> CaState {
        self.ca_state
    }
    /// The algorithm's model of the path, if it keeps one; it begins to with the connection established.
    pub fn cc_info(&self) -> Option<knee_cc::Info> {
        match self.state {
            State::Established => self.alg.info(&self.cc),
            _ => None,
        }
    }
    pub fn srtt_us(&self) -> u32 {
        self.rtt.srtt_us()
    }
    pub fn rttvar_us(&self) -> u32 {
        self.rtt.rttvar_us()
    }
    pub fn rto_us(&self, conf: &HostConf) -> u64 {
        self.rtt.rto_jiffies(conf) * conf.tick_ns / 1_000
    }
    pub fn backoff(&self) -> u32 {
        self.backoff
    }
    pub fn reord_seen(&self) -> u32 {
        self.reord_seen
    }
    pub fn sndbuf_bytes(&self) -> u64 {
        self.sndbuf_bytes
    }
    pub fn snd_wnd_bytes(&self) -> u64 {
        self.snd_wnd
    }
    pub fn notsent_bytes(&self) -> u64 {
        self.write_seq.saturating_sub(self.snd_nxt.max(1))
    }
    /// Payload that has been sent and is not yet cumulatively acked.
    pub fn delivery_rate_bits_per_sec(&self) -> u64 {
        match self.rate_interval_us {
            0 => 0,
            us => u64::from(self.rate_delivered) * u64::from(self.cc.mss_bytes) * 8_000_000 / us,
        }
    }
    pub fn delivery_rate_app_limited(&self) -> bool {
        self.rate_app_limited
    }

    /// Brings time integrals and limit times up to now.
    pub fn settle(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.set_limit(now_ns, self.limit);
    }

    /// Time under a limit up to now.
    pub fn limited_ns(&self, limit: Limit, now_ns: u64) -> u64 {
        let current = if self.limit == limit {
            now_ns - self.limit_since_ns
        } else {
            0
        };
        self.counters.limit_ns[limit as usize] + current
    }

    /// Time with something outstanding or to send, up to now.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        let current = if self.busy_since_ns == NEVER {
            0
        } else {
            now_ns - self.busy_since_ns
        };
        self.counters.busy_ns + current
    }

    /// Starts the steady part: distributions and means count from here.
    pub fn start_measuring(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.measuring = true;
        self.cwnd_integral = 0.0;
        self.inflight_integral = 0.0;
    }

    /// Integrals over the steady part, in segment-nanoseconds: cwnd, inflight.
    pub fn integrals(&self) -> (f64, f64) {
        (self.cwnd_integral, self.inflight_integral)
    }

    #[inline]
    pub(super) fn integrate(&mut self, now_ns: u64) {
        let dt = (now_ns - self.integral_since_ns) as f64;
        if dt > 0.0 {
            self.cwnd_integral += f64::from(self.cc.snd_cwnd) * dt;
            self.inflight_integral += f64::from(self.packets_in_flight()) * dt;
            self.integral_since_ns = now_ns;
        }
    }

    #[inline]
    pub(super) fn set_limit(&mut self, now_ns: u64, limit: Limit) {
        self.counters.limit_ns[self.limit as usize] += now_ns - self.limit_since_ns;
        self.limit = limit;
        self.limit_since_ns = now_ns;
    }

    pub(super) fn set_busy(&mut self, now_ns: u64, busy: bool) {
        match (busy, self.busy_since_ns) {
            (true, NEVER) => self.busy_since_ns = now_ns,
            (false, since) if since != NEVER => {
                self.counters.busy_ns += now_ns - since;
                self.busy_since_ns = NEVER;
            }
            _ => {}
        }
    }
}
