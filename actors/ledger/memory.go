package ledger

// memoryBytes bounds the ids and answers that are kept.
const memoryBytes = 8 << 20

// memory remembers answered request ids, so that a repeated one is not run
// again and gets the same bytes.
type memory struct {
	answers map[string][]byte
	order   fifo[string]
	bytes   int
}

// add keeps the answer of an id; nil when there was none. Beyond limit ids, or
// memoryBytes, the oldest are forgotten, and an id too long to be kept is at
// once.
func (m *memory) add(id string, answer []byte, limit int) {
	if m.answers == nil {
		m.answers = make(map[string][]byte)
	}
	if len(answer) > memoryBytes/8 {
		answer = nil // known, but too big to say again
	}
	m.answers[id] = answer
	m.order.push(id)
	m.bytes += len(id) + len(answer)
	for m.order.len() > limit || m.bytes > memoryBytes {
		old := m.order.pop()
		m.bytes -= len(old) + len(m.answers[old])
		delete(m.answers, old)
	}
}

func (m *memory) recall(id string) (answer []byte, known bool) {
	answer, known = m.answers[id]
	return answer, known
}
