package transport

import (
	"bytes"
	"sync/atomic"
)

// tail keeps the last bytes that were written to it. One goroutine at a time adds to it,
// and any may read it. It has no lock of the link's to wait for: the link holds that while
// it kills a process, which may wait until its stderr is read.
type tail struct {
	max int
	// buf ends with these bytes. The bytes of a buf that was stored never change: later
	// ones go behind them, or into another array.
	buf atomic.Pointer[[]byte]
}

func (t *tail) add(p []byte) {
	p = p[max(0, len(p)-t.max):]
	var buf []byte
	if old := t.buf.Load(); old != nil {
		buf = *old
	}
	if drop := len(buf) + len(p) - t.max; drop > t.max {
		buf = bytes.Clone(buf[drop:])
	}
	buf = append(buf, p...)
	t.buf.Store(&buf)
}

func (t *tail) String() string {
	buf := t.buf.Load()
	if buf == nil {
		return ""
	}
	return string((*buf)[max(0, len(*buf)-t.max):])
}
