use knee_model::scenario::{AlgorithmInfo, Names, parse};
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let names = Names {
        algorithms: knee_cc::algorithms()
            .iter()
            .map(|a| AlgorithmInfo {
                name: a.name().into(),
                params: vec![],
            })
            .collect(),
    };
    let sc = parse(&text, "x", &names).unwrap_or_else(|e| panic!("{e}"));
    for cell in &sc.cells {
        for rep in 0..std::env::args().nth(2).map_or(1, |r| r.parse().unwrap()) {
            let t = std::time::Instant::now();
            let out = knee_sim::run(cell, rep, &Default::default(), &mut |_| true).unwrap();
            let dt = t.elapsed().as_secs_f64();
            println!(
                "{:?}  {} pkts {:.3}s {:.2} Mpps",
                cell.axes,
                out.data_packets,
                dt,
                out.data_packets as f64 / dt / 1e6
            );
            let f = &out.flows;
            for i in 0..f.flow.len().min(6) {
                println!(
                    "   {} good {:.3} Mbit/s retr {:.3}% srtt p50 {:?} p95 {:?} min {:?} qd {:?} cwnd {:.1} infl {:.1} lim c{} r{} s{} p{} a{} rto {} rec {} undo {} tlp {} drops {} lost {} fct {:?} req/s {:?}",
                    f.algorithm[i],
                    f.goodput_bits_per_sec[i] / 1e6,
                    f.retransmit_pct[i],
                    f.srtt_us_p50[i],
                    f.srtt_us_p95[i],
                    f.min_rtt_us[i],
                    f.queue_delay_us_p95[i],
                    f.snd_cwnd_mean[i],
                    f.inflight_mean[i],
                    f.cwnd_limited_us[i],
                    f.rwnd_limited_us[i],
                    f.sndbuf_limited_us[i],
                    f.pacing_limited_us[i],
                    f.app_limited_us[i],
                    f.rto_count[i],
                    f.recovery_count[i],
                    f.undo_count[i],
                    f.tlp_count[i],
                    f.queue_dropped_pkts[i],
                    f.path_lost_pkts[i],
                    f.completion_us[i],
                    f.requests_per_sec[i]
                );
                let a = &out.accounts[i];
                if a.sent_bytes != a.arrived_bytes + a.dropped_bytes + a.under_way_bytes
                    || a.read_bytes > a.written_bytes
                {
                    println!("   ACCOUNT {a:?}");
                }
            }
            if std::env::var("EV").is_ok() {
                let e = &out.events;
                for i in 0..e.t_ns.len().min(60) {
                    println!(
                        "     {:.6} {} {} cwnd {} ss {}",
                        e.t_ns[i] as f64 / 1e9,
                        e.flow[i],
                        e.event[i],
                        e.snd_cwnd[i],
                        e.snd_ssthresh[i]
                    );
                }
            }
            if let Ok(n) = std::env::var("SM") {
                let n: usize = n.parse().unwrap();
                let s = &out.samples;
                for i in (0..s.t_ns.len()).step_by(n) {
                    println!(
                        "     {:.3} f{} st{} cwnd {} ss {} infl {} srtt {} pace {:.2} del {:.2} sndbuf {} rwnd {} notsent {}",
                        s.t_ns[i] as f64 / 1e9,
                        s.flow[i],
                        s.ca_state[i],
                        s.snd_cwnd[i],
                        s.snd_ssthresh[i],
                        s.inflight[i],
                        s.srtt_us[i],
                        s.pacing_rate_bits_per_sec[i].unwrap_or(0) as f64 / 1e6,
                        s.delivery_rate_bits_per_sec[i] as f64 / 1e6,
                        s.sndbuf_bytes[i],
                        s.snd_wnd_bytes[i],
                        s.notsent_bytes[i]
                    );
                }
            }
        }
    }
}
