package kernel

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is the production mailbox: unbounded, because bounds are kept by
// credits at the edges, where waiting is possible. It takes no memory while it
// is empty.
type mailbox struct {
	sys        *System
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher

	mu        sync.Mutex
	system    []any
	user      []any
	suspended bool
	running   bool  // a turn is at work, or is bound to be
	held      int   // turns that will take it up themselves
	turn      *Turn // of the goroutine at work
}

// PostUserMessage implements actor.Mailbox.
func (m *mailbox) PostUserMessage(x any) {
	m.mu.Lock()
	m.user = append(m.user, x)
	m.schedule()
	m.mu.Unlock()
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(x any) {
	m.mu.Lock()
	m.system = append(m.system, x)
	m.schedule()
	m.mu.Unlock()
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(i actor.MessageInvoker, d actor.Dispatcher) {
	m.invoker, m.dispatcher = i, d
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.user)
}

// due reports whether somebody must take the mailbox up, who then does; mu is
// held.
func (m *mailbox) due() bool {
	if m.running || m.held > 0 || len(m.system) == 0 && (m.suspended || len(m.user) == 0) {
		return false
	}
	m.running = true
	return true
}

func (m *mailbox) schedule() {
	if m.due() {
		m.dispatcher.Schedule(m.process)
	}
}

// hold keeps the mailbox from being scheduled until release.
func (m *mailbox) hold() {
	m.mu.Lock()
	m.held++
	m.mu.Unlock()
}

// release reports whether the caller has to see to it that the mailbox is
// processed.
func (m *mailbox) release() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held--
	return m.due()
}

// process handles what is there and then whatever that left to do.
func (m *mailbox) process() {
	t := m.sys.newTurn()
	for !m.run(t) {
		runtime.Gosched()
	}
	t.Run()
	t.Finish()
}

// run handles messages, and reports false when there are more than is a turn's
// share: nobody waits for the end of a long queue, and what the turn had to do
// has been given to others.
func (m *mailbox) run(t *Turn) bool {
	m.turn = t
	for handled := 1; m.step(); handled++ {
		if handled == m.dispatcher.Throughput() {
			t.spread()
			return false
		}
	}
	return true
}

// step handles one message and reports whether it may be called again.
func (m *mailbox) step() bool {
	m.mu.Lock()
	var msg any
	switch {
	case len(m.system) > 0:
		msg = m.system[0]
		m.system = advance(m.system)
		switch msg.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
			m.mu.Unlock()
			return true
		case *actor.ResumeMailbox:
			m.suspended = false
			m.mu.Unlock()
			return true
		}
		m.mu.Unlock()
		m.invoke(msg, m.invoker.InvokeSystemMessage)
	case len(m.user) > 0 && !m.suspended:
		msg = m.user[0]
		m.user = advance(m.user)
		m.mu.Unlock()
		m.invoke(msg, m.invoker.InvokeUserMessage)
	default:
		m.turn, m.running = nil, false
		m.mu.Unlock()
		return false
	}
	return true
}

func (m *mailbox) invoke(msg any, by func(any)) {
	defer func() {
		if r := recover(); r != nil {
			m.invoker.EscalateFailure(r, msg)
		}
	}()
	by(msg)
}

// advance drops the first message. An empty queue gives up what it needed at
// its longest.
func advance(q []any) []any {
	q[0] = nil
	if q = q[1:]; len(q) > 0 {
		return q
	}
	return nil
}
