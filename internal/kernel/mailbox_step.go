package kernel

import "github.com/asynkron/protoactor-go/actor"

// stepMailbox handles one message per dispatch, so that a single-threaded
// scheduler decides the order message by message. It is not safe for
// concurrent use and needs none.
type stepMailbox struct {
	system, user []any
	suspended    bool
	scheduled    bool
	invoker      actor.MessageInvoker
	dispatcher   actor.Dispatcher
}

func (m *stepMailbox) PostUserMessage(x any) {
	if x == nil {
		panic("kernel: nil message")
	}
	m.user = append(m.user, x)
	m.schedule()
}

func (m *stepMailbox) PostSystemMessage(x any) {
	m.system = append(m.system, x)
	m.schedule()
}

func (m *stepMailbox) RegisterHandlers(i actor.MessageInvoker, d actor.Dispatcher) {
	m.invoker, m.dispatcher = i, d
}

func (m *stepMailbox) Start() {}

func (m *stepMailbox) UserMessageCount() int { return len(m.user) }

func (m *stepMailbox) runnable() bool {
	return len(m.system) > 0 || (!m.suspended && len(m.user) > 0)
}

func (m *stepMailbox) schedule() {
	if !m.scheduled && m.runnable() {
		m.scheduled = true
		m.dispatcher.Schedule(m.step)
	}
}

func (m *stepMailbox) step() {
	var msg any
	defer func() {
		if r := recover(); r != nil {
			m.invoker.EscalateFailure(r, msg)
		}
		m.scheduled = false
		m.schedule()
	}()
	if len(m.system) > 0 {
		msg, m.system = m.system[0], m.system[1:]
		switch msg.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			m.invoker.InvokeSystemMessage(msg)
		}
		return
	}
	if !m.suspended && len(m.user) > 0 {
		msg, m.user = m.user[0], m.user[1:]
		m.invoker.InvokeUserMessage(msg)
	}
}
