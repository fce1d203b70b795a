package agent

// Conversation is one conversation of an agent, from the first line to the end.
// It is used by one goroutine at a time.
type Conversation struct{ e *engine }

// Open begins a conversation over p. Nothing is read or written before it is
// played.
func Open(l Launch, p Port, cfg Config) *Conversation {
	return &Conversation{newEngine(l, p, cfg)}
}

// Run serves one conversation over p and returns how the agent ended.
func Run(l Launch, p Port, cfg Config) Exit { return Open(l, p, cfg).Run() }

// Run plays to the end and returns how the agent ended.
func (c *Conversation) Run() Exit {
	c.e.play()
	return *c.e.exit
}

// Play plays to the end, which it reports, or until nothing is left to do before
// the host writes, closes stdin or sends a signal: then it is to be called
// again. Deadlines it waits for, as Run does.
func (c *Conversation) Play() (x Exit, ended bool) {
	c.e.polls, c.e.rests = true, false
	if c.e.play(); c.e.exit == nil {
		return Exit{}, false
	}
	return *c.e.exit, true
}

// play goes on until the agent has ended, or rests.
func (e *engine) play() {
	defer func() {
		if !e.rests {
			e.stopStrands()
		}
	}()
	if !e.restored {
		e.restored = true
		e.restore()
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
