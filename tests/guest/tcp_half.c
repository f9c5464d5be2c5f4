/* Reno as a source of the kernel, with a parameter: which part of the window a loss takes. */
#include <linux/module.h>
#include <net/tcp.h>
static int part __read_mostly = 2;
module_param(part, int, 0644);
static u32 half_ssthresh(struct sock *sk) { return max(tcp_snd_cwnd(tcp_sk(sk)) / part, 2U); }
static struct tcp_congestion_ops half __read_mostly = {
	.ssthresh = half_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = tcp_reno_cong_avoid,
	.owner = THIS_MODULE, .name = "reno",
};
static int __init half_register(void) { return tcp_register_congestion_control(&half); }
static void __exit half_unregister(void) { tcp_unregister_congestion_control(&half); }
module_init(half_register);
module_exit(half_unregister);
MODULE_LICENSE("GPL");
