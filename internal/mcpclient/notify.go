package mcpclient

import (
	"encoding/json"
	"strings"
)

const toolsChanged = "notifications/tools/list_changed"

// Notify passes a notification of the server on.
type Notify = func(method string, params json.RawMessage) error

// heard is a session that gets the changes of the server's lists.
type heard struct {
	view   Caller
	notify Notify
}

// Listen implements [Conn].
func (l *Link) Listen(v Caller, notify Notify) {
	if l.hear(v, notify) && notify != nil {
		_ = notify(toolsChanged, nil) // an error here has no reader
	}
}

// hear adds a listener, and reports whether a change came before there was one.
func (l *Link) hear(v Caller, notify Notify) (missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	missed, l.unheard = l.unheard, false
	for i := range l.views {
		if l.views[i].view == v {
			l.views[i].notify = notify
			return missed
		}
	}
	l.views = append(l.views, heard{v, notify})
	return missed
}

// forward passes a notification on to the session that it is for: progress to the call, a
// change of a list to all. Others, such as log messages, do not say whose they are, and may
// come after the answer: they are dropped, because they may be about another session's data.
func (l *Link) forward(method string, params json.RawMessage) {
	var to []Notify
	switch {
	case method == "notifications/progress":
		var fields map[string]json.RawMessage
		var token string
		if json.Unmarshal(params, &fields) != nil || json.Unmarshal(fields["progressToken"], &token) != nil {
			return
		}
		l.mu.Lock()
		c := l.tokens[token]
		l.mu.Unlock()
		if c == nil {
			return
		}
		fields["progressToken"] = c.token
		if changed, err := json.Marshal(fields); err == nil {
			params, to = changed, []Notify{c.notify}
		}
	case strings.HasSuffix(method, "/list_changed"):
		l.mu.Lock()
		l.unheard = l.unheard || len(l.views) == 0 && method == toolsChanged
		for _, h := range l.views {
			to = append(to, h.notify)
		}
		l.mu.Unlock()
	}
	for _, notify := range to {
		if notify != nil {
			_ = notify(method, params) // it fails when the session is over, and so is the news
		}
	}
}

// Forget implements [Conn].
func (l *Link) Forget(v Caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.views {
		if l.views[i].view == v {
			l.views = append(l.views[:i:i], l.views[i+1:]...)
			return
		}
	}
}
