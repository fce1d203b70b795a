package agent

// Conversation is one conversation of an agent, from the first line to the end.
// It is used by one goroutine at a time.
type Conversation struct{ e *engine }

// Open returns a new conversation over p. It reads and writes nothing before Run or
// Play.
func Open(l Launch, p Port, cfg Config) *Conversation {
	return &Conversation{newEngine(l, p, cfg)}
}

// Run serves one conversation over p and returns how the agent ended.
func Run(l Launch, p Port, cfg Config) Exit { return Open(l, p, cfg).Run() }

// Run runs the conversation to its end and returns how the agent ended.
func (c *Conversation) Run() Exit {
	c.e.play()
	return *c.e.exit
}

// Play runs the conversation until it ends, or until the agent can only wait for the
// host to write, close stdin or send a signal. ended reports whether the conversation
// has ended; otherwise call Play again when the host has done something. Play waits for
// deadlines, as Run does.
func (c *Conversation) Play() (x Exit, ended bool) {
	c.e.polls, c.e.rests = true, false
	if c.e.play(); c.e.exit == nil {
		return Exit{}, false
	}
	return *c.e.exit, true
}

// play runs until the agent has ended, or is idle.
func (e *engine) play() {
	defer func() {
		if !e.rests {
			e.stopStrands()
			e.outside.join(joinGrace)
		}
	}()
	if !e.restored {
		e.restored = true
		e.restore()
		e.connectOwn()
	}
	for e.exit == nil && !e.rests {
		e.schedule()
		e.flush()
		if e.exit == nil && e.finished() {
			e.quit(e.naturalExit())
		}
		if e.exit == nil {
			e.receive()
		}
	}
}
