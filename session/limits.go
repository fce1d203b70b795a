package session

import "time"

// Limits bounds what a session holds and how long it waits. Zero fields take
// their defaults.
type Limits struct {
	// Messages and Bytes bound what is read and not yet consumed; at either
	// the reader stops. Defaults: 4096 messages, 4 MiB.
	Messages int
	Bytes    int64 // see Messages
	// HardBytes bounds it while the reader must go on because a control call
	// waits for its answer; each message then counts as 256 bytes more than it
	// has. Default: 8 MiB, or twice Bytes if that is more.
	HardBytes int64
	// Consumer bounds how long nobody may read a message while the reader has
	// stopped because Messages or Bytes is reached; then the session fails with
	// [ErrConsumerStalled]. Default: no limit.
	Consumer time.Duration
	// Requests bounds how many requests of the agent are open at once; those
	// above it are denied. Default: 16,384. Requests are also denied above 10 MiB
	// of open requests. Those larger than 1 MiB are counted apart, up to 64 MiB. A
	// request that is the only open one may have any size.
	Requests int
	// Initialize bounds the initialize call. Default: 120 s; negative: no limit.
	Initialize time.Duration
	// Control bounds every other call to the agent. Default: 60 s; negative:
	// no limit.
	Control time.Duration
	// Background bounds how long a run (sdk.Run, sdk.Query) waits, after the last
	// result, while nothing but background tasks is left. Default: 30 s if all of
	// them are shell commands, such as a development server, else 10 min, Claude
	// Code's own limit with -p (found in 2.1.329); negative: no limit.
	Background time.Duration
	// Answers is how many answered MCP messages are remembered, at 5 bytes each.
	// A message that comes again under the same id does not run its tool twice: it
	// gets an error. Default: 4,096.
	Answers int
}

// WithDefaults returns the limits with the defaults of their zero fields.
// Consumer and Background stay as they are: the default of the first is no limit,
// that of the second depends on the tasks.
func (l Limits) WithDefaults() Limits {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if l.Messages <= 0 {
		l.Messages = 4096
	}
	if l.Bytes <= 0 {
		l.Bytes = 4 << 20
	}
	if l.HardBytes <= 0 {
		l.HardBytes = max(8<<20, 2*l.Bytes)
	}
	if l.Answers <= 0 {
		l.Answers = 4096
	}
	if l.Requests <= 0 {
		l.Requests = 16384
	}
	def(&l.Initialize, 120*time.Second)
	def(&l.Control, 60*time.Second)
	return l
}

// Graces are how long each step of the close ladder waits for the agent before
// the next one. Zero fields take their defaults: those of Flush, EOF and Terminate
// are the dialect's.
type Graces struct {
	Flush     time.Duration // from the last turn to closing stdin, for agents that have to write out what they hold
	EOF       time.Duration // from closing stdin to SIGTERM
	Terminate time.Duration // from SIGTERM to SIGKILL
	Output    time.Duration // from the exit to the end of its output; default: 2 s
	Sweep     time.Duration // for ending the processes that the agent left behind; default: 10 s
}

// WithDefaults returns the graces with the defaults of Output and Sweep, which do
// not depend on the dialect.
func (g Graces) WithDefaults() Graces {
	if g.Output <= 0 {
		g.Output = 2 * time.Second
	}
	if g.Sweep <= 0 {
		g.Sweep = 10 * time.Second
	}
	return g
}
