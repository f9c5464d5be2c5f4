//! The program by which the kernel leaves out what is not of the run, so that other work of a host takes no room. It sees a
//! packet from its IP header on. Source: Linux 6.18, Documentation/networking/filter.rst (classic BPF).

use libc::{
    BPF_ABS, BPF_ALU, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K,
    BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_RSH, sock_filter,
};

/// A jump goes over 255 instructions at most. Of more ports all TCP passes.
const MOST_PORTS: usize = 120;
/// The whole packet; the room of a frame cuts it.
const ALL: u32 = u32::MAX;

fn does(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Goes on so many instructions further where it holds, and where not.
fn goes(test: u32, k: u32, then: usize, otherwise: usize) -> sock_filter {
    let step = |count: usize| u8::try_from(count).expect("the program is short");
    sock_filter {
        code: (BPF_JMP | test | BPF_K) as u16,
        jt: step(then),
        jf: step(otherwise),
        k,
    }
}

/// TCP of IPv4 and IPv6 where either end has one of the ports.
pub fn of_ports(ports: &[u16]) -> Vec<sock_filter> {
    let ports = if ports.len() > MOST_PORTS { &[] } else { ports };
    let tests = if ports.is_empty() {
        1
    } else {
        2 * ports.len() + 2
    };
    let mut program = vec![
        does(BPF_LD | BPF_B | BPF_ABS, 0),
        does(BPF_ALU | BPF_RSH | BPF_K, 4),
        goes(BPF_JEQ, 6, 6, 0),
        goes(BPF_JEQ, 4, 0, 8 + tests),
        // IPv4: no later fragment, TCP.
        does(BPF_LD | BPF_H | BPF_ABS, 6),
        goes(BPF_JSET, 0x1fff, 6 + tests, 0),
        does(BPF_LD | BPF_B | BPF_ABS, 9),
        does(BPF_LDX | BPF_B | BPF_MSH, 0),
        goes(BPF_JEQ, 6, 3, 3 + tests),
        // IPv6: TCP at once.
        does(BPF_LD | BPF_B | BPF_ABS, 6),
        does(BPF_LDX | BPF_IMM, 40),
        goes(BPF_JEQ, 6, 0, tests),
    ];
    let first = program.len();
    if ports.is_empty() {
        program.push(does(BPF_JMP | BPF_JA, 1));
    } else {
        for offset in [0, 2] {
            program.push(does(BPF_LD | BPF_H | BPF_IND, offset));
            for &port in ports {
                let to_the_end = first + tests - program.len();
                program.push(goes(BPF_JEQ, port.into(), to_the_end, 0));
            }
        }
    }
    program.push(does(BPF_RET | BPF_K, 0));
    program.push(does(BPF_RET | BPF_K, ALL));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs it as the kernel does: the instructions that it has.
    fn passes(program: &[sock_filter], packet: &[u8]) -> bool {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        loop {
            let one = program[at];
            at += 1;
            let code = u32::from(one.code);
            let load = |offset: u32, bytes: usize| {
                let offset = offset as usize;
                let found = packet.get(offset..offset + bytes)?;
                Some(
                    found
                        .iter()
                        .fold(0, |sum, &byte| sum << 8 | u32::from(byte)),
                )
            };
            match code {
                c if c == BPF_LD | BPF_B | BPF_ABS => match load(one.k, 1) {
                    Some(found) => a = found,
                    None => return false,
                },
                c if c == BPF_LD | BPF_H | BPF_ABS => match load(one.k, 2) {
                    Some(found) => a = found,
                    None => return false,
                },
                c if c == BPF_LD | BPF_H | BPF_IND => match load(x + one.k, 2) {
                    Some(found) => a = found,
                    None => return false,
                },
                c if c == BPF_LDX | BPF_B | BPF_MSH => {
                    x = 4 * u32::from(packet[one.k as usize] & 15)
                }
                c if c == BPF_LDX | BPF_IMM => x = one.k,
                c if c == BPF_ALU | BPF_RSH | BPF_K => a >>= one.k,
                c if c == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if a == one.k { one.jt } else { one.jf })
                }
                c if c == BPF_JMP | BPF_JSET | BPF_K => {
                    at += usize::from(if a & one.k != 0 { one.jt } else { one.jf })
                }
                c if c == BPF_JMP | BPF_JA => at += one.k as usize,
                c if c == BPF_RET | BPF_K => return one.k > 0,
                _ => panic!("{code:#x} is none of its instructions"),
            }
        }
    }

    fn packet(version: u8, transport: u8, ports: [u16; 2]) -> Vec<u8> {
        let (length, of_transport) = match version {
            4 => (24, 9),
            _ => (40, 6),
        };
        let mut packet = vec![0; length];
        // IPv4 with an option.
        packet[0] = version << 4 | 6;
        packet[of_transport] = transport;
        packet.extend(ports.map(u16::to_be_bytes).concat());
        packet.resize(length + 20, 0);
        packet
    }

    #[test]
    fn what_has_one_of_the_ports_passes_and_nothing_else() {
        for ports in [
            vec![5201],
            vec![40_001, 40_777, 5201],
            (5100..5220).collect(),
        ] {
            let program = of_ports(&ports);
            for version in [4, 6] {
                assert!(passes(&program, &packet(version, 6, [5201, 1])));
                assert!(passes(&program, &packet(version, 6, [1, 5201])));
                assert!(!passes(&program, &packet(version, 6, [22, 50_000])));
                assert!(!passes(&program, &packet(version, 17, [5201, 5201])));
                assert!(!passes(&program, &packet(version, 6, [5201, 1])[..20]));
            }
            let mut fragment = packet(4, 6, [5201, 5201]);
            fragment[7] = 1;
            assert!(!passes(&program, &fragment));
            assert!(!passes(&program, &[0; 60]));
        }
    }

    #[test]
    fn of_more_ports_than_a_jump_can_reach_all_of_tcp_passes() {
        let program = of_ports(&(1..=200).collect::<Vec<_>>());
        assert!(passes(&program, &packet(4, 6, [1000, 1001])));
        assert!(passes(&program, &packet(6, 6, [1000, 1001])));
        assert!(!passes(&program, &packet(4, 17, [1000, 1001])));
    }
}
