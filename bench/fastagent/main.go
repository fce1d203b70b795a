// Command fastagent is an agent that speaks Claude Code's dialect and costs
// next to nothing. It learns from the prompt what to do, as in "hook 1000": how
// much to stream, or how often to ask; see the modes of bench/host. Without
// such a prompt BENCH_MODE and BENCH_N say it.
package main

import "github.com/agent-troupe/troupe/bench/internal/fast"

func main() { fast.Main() }
