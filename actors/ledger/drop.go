package ledger

// Drop ends a request that the agent has given up by other means than a
// control_cancel_request: the callback's scope ends, and no answer is sent. It
// reports false when the request is no longer open.
func (l *Ledger) Drop(r *Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.state > requestTaken {
		return false
	}
	l.settle(r, requestCancelled)
	return true
}
