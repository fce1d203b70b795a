package session

import "time"

// Limits bound what a session buffers and how long it waits. Zero fields take
// their defaults.
type Limits struct {
	// Messages and Bytes limit the messages that were read from the agent and not
	// yet consumed. When either limit is reached, the session stops reading.
	// Negative values are a *[ConfigError]. Defaults: 4,096 messages, 4 MiB.
	Messages int
	Bytes    int64 // see Messages
	// HardBytes is the limit instead while a control call waits for its answer or the
	// session closes, because the session must then continue to read. Each message
	// counts as 256 bytes more than its length. Above the limit, partial messages are
	// dropped ([MessagesDropped]); without partial messages to drop, calls fail with
	// [ErrConsumerStalled]. A negative value is a *[ConfigError]. Default: 8 MiB, or
	// twice Bytes if that is more.
	HardBytes int64
	// Consumer limits how long the session waits for someone to read a message after
	// it has stopped reading at Messages or Bytes. Then it fails with
	// [ErrConsumerStalled]. Default: no limit.
	Consumer time.Duration
	// Stall limits how long a turn may go without progress: then a [TurnStalled] event
	// reports it, and the turn is interrupted once. Everything that the agent writes is
	// progress, except keep-alives, states, and reports that it tries again. A turn does
	// not stall while the agent waits for an answer of the host or of a person, while a
	// tool or a background task runs, and while its messages have no reader. A turn in
	// which the agent only tries again is Retry's concern, unless that has no limit.
	// Default: 30 min; negative: no limit.
	Stall time.Duration
	// StallKill is how long after the interrupt of a stalled turn the agent is killed, if it
	// still has made no progress. With Options.MaxRestarts another process follows, as after
	// any death; without it the session fails with an *[ExitError]. Default: 0, never;
	// negative values are a *[ConfigError].
	StallKill time.Duration
	// Retry limits how long the agent may only try a call of the model's API again in a turn
	// (api_retry). Then a [TurnRetries] event reports it, the turn is interrupted and ends
	// with a *[RetryLimitError]. Anything else that the agent writes is progress, as for
	// Stall. If the API refuses the login (401, 403), the turn is interrupted at once.
	// Default: 30 min; negative: no limit.
	Retry time.Duration
	// Start limits how long the start of the agent's process may take, from the call of the
	// spawner until the process runs. Then the session fails with a *[TimeoutError]. The
	// wait for a breaker of the runtime does not count. Default: 5 min; negative: no limit.
	Start time.Duration
	// Requests limits how many requests of the agent are open at the same time;
	// further requests are denied. Default: 16,384. Requests are also denied when the
	// open ones have more than 10 MiB. Requests larger than 1 MiB are counted
	// separately, up to 64 MiB. The only open request may have any size.
	Requests int
	// Initialize limits how long the agent may take to answer the initialize call.
	// Default: 120 s; negative: no limit.
	Initialize time.Duration
	// Control limits how long the agent may take to answer any other control call.
	// Default: 60 s; negative: no limit.
	Control time.Duration
	// Background limits how long sdk.Run and sdk.Query wait after the last result
	// for background tasks to end. Default: 30 s if all of them are shell commands,
	// such as a development server, otherwise 10 min, which is Claude Code's own
	// limit with -p (found in 2.1.329); negative: no limit.
	Background time.Duration
	// Answers is the number of answered MCP messages whose ids are remembered, at 5
	// bytes each. A message that arrives again with such an id does not run its tool
	// again and gets an error. A negative value is a *[ConfigError]. Default: 4,096.
	Answers int
}

// WithDefaults returns the limits with the defaults of their zero fields.
// Consumer and Background stay unchanged: by default Consumer has no limit, and
// the default of Background depends on the tasks.
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
	def(&l.Stall, 30*time.Minute)
	def(&l.Retry, 30*time.Minute)
	def(&l.Start, 5*time.Minute)
	return l
}

// Graces are how long each step of the close ladder waits for the agent before
// the next step. Zero fields take their defaults. The defaults of Flush, EOF and
// Terminate depend on the backend.
type Graces struct {
	Flush     time.Duration // from the last turn to closing stdin, for agents that must write their state first; default: Claude none, Qoder 10 s
	EOF       time.Duration // from closing stdin to SIGTERM; default: Claude 2 s, Qoder 12 s
	Terminate time.Duration // from SIGTERM to SIGKILL; default: Claude 5 s, Qoder 12 s
	Output    time.Duration // from the end of the process to the end of its output; default: 2 s
	Sweep     time.Duration // for killing the processes that the agent left behind; default: 10 s
}

// WithDefaults returns the graces with the defaults of Output and Sweep, which do
// not depend on the backend.
func (g Graces) WithDefaults() Graces {
	if g.Output <= 0 {
		g.Output = 2 * time.Second
	}
	if g.Sweep <= 0 {
		g.Sweep = 10 * time.Second
	}
	return g
}
