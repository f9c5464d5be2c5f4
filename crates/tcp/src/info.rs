//! What others may ask of an endpoint: the fields of `tcp_info`, and how its time was spent.

use std::mem::offset_of;

use knee_kit::ahead;

use super::account::{Means, TimeSpent};
use super::scoreboard::Scoreboard;
use super::{CaState, Endpoint, HostConf, State};

impl Endpoint {
    pub fn ca_state(&self) -> CaState {
        self.recovery.state()
    }
    /// The algorithm's model of the path, if it keeps one; `None` before the connection is established. It is shown the
    /// time, and all else as of its last call.
    pub fn cc_info(&self, now_ns: u64) -> Option<knee_cc::Info> {
        let shown = || knee_cc::CcIn {
            clock_ns: now_ns,
            ..self.cc
        };
        let info = || self.alg.info(&shown());
        (self.state == State::Established).then(info).flatten()
    }
    pub fn srtt_us(&self) -> u32 {
        self.rtt.srtt_us()
    }
    pub fn rttvar_us(&self) -> u32 {
        self.rtt.rttvar_us()
    }
    pub fn rto_us(&self, conf: &HostConf) -> u64 {
        self.rtt.rto_jiffies() * conf.tick_ns / 1_000
    }
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }
    pub fn delivered_ce(&self) -> u32 {
        self.ecn.delivered_ce()
    }
    pub fn backoff(&self) -> u32 {
        self.xmit_timer.backoff()
    }
    pub fn sndbuf_bytes(&self) -> u64 {
        self.buffer.limit_bytes()
    }
    pub fn snd_wnd_bytes(&self) -> u64 {
        self.peer_window.bytes()
    }
    /// Payload that was written.
    pub fn written_bytes(&self) -> u64 {
        self.buffer.write_seq() - 1
    }
    /// Payload that was written and never sent.
    pub fn notsent_bytes(&self) -> u64 {
        self.buffer.unsent_bytes(self.snd_nxt)
    }
    pub fn delivery_rate_bits_per_sec(&self) -> u64 {
        self.rate.bits_per_sec(self.cc.mss_bytes)
    }
    pub fn delivery_rate_app_limited(&self) -> bool {
        self.rate.is_app_limited()
    }

    /// Brings means and times up to now.
    pub fn settle(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.time.settle(now_ns);
    }
    /// The connection opens: means count from here.
    pub fn start_means(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.means.restart();
    }
    /// Starts the steady part: distributions and means count from here.
    pub fn start_measuring(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.means.start();
    }
    /// Fetches ahead what an arrival looks at; of an end that `sends`, also what an ACK looks at.
    #[inline(always)]
    pub fn fetch(&self, sends: bool) {
        match sends {
            true => ahead::fetch_until(self, offset_of!(Endpoint, undo)),
            false => ahead::fetch_until(self, offset_of!(Endpoint, cc)),
        }
    }
    /// The same of what an ACK looks at elsewhere in memory.
    pub fn fetch_parts(&self) {
        if let Some(head) = self.board.head() {
            // And the next one, which comes first when that goes.
            ahead::fetch_until(head, 2 * size_of_val(head));
            ahead::fetch(self.alg.state());
            self.board.fetch_sets();
        }
    }
    pub fn time(&self) -> &TimeSpent {
        &self.time
    }
    pub fn means(&self) -> &Means {
        &self.means
    }
}
