package transport

import (
	"context"
	"io"
)

// pipeSize is what an in-memory pipe holds before writers wait, as on Linux.
const pipeSize = 64 << 10

// pipe is a byte pipe of a process in memory. Its waits go through the executor, so that
// it works on a simulation's single thread. The lock of the process guards it.
type pipe struct {
	of       *memoryProcess
	buf      []byte
	readOff  int
	noWriter bool // the write end is closed: reads drain, then end
	noReader bool // the read end is closed: writes fail
	changed  chan struct{}
	next     func() // a task for the next change; see onChange
}

// wait returns what the next change closes; mu is held.
func (p *pipe) wait() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// onChange has fn run as a task once anything was written, or an end closed.
func (p *pipe) onChange(fn func()) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.next = fn
	if p.ready() {
		p.fire()
	}
}

// untilReadable reports false when a read would not wait; else fn is run as a
// task at the next change.
func (p *pipe) untilReadable(fn func()) bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.ready() {
		return false
	}
	p.next = fn
	return true
}

// ready reports whether a read would not wait; mu is held.
func (p *pipe) ready() bool { return len(p.buf) > p.readOff || p.noWriter || p.noReader }

// fire says that the pipe has changed; mu is held.
func (p *pipe) fire() {
	if p.next != nil {
		p.of.exec.Go(p.next)
		p.next = nil
	}
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// rest gives up the buffers that have nothing in them.
func (p *memoryProcess) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range []*pipe{&p.stdin, &p.stdout} {
		if len(b.buf) == 0 {
			b.buf = nil
		}
	}
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (int, error) {
	for {
		p.of.mu.Lock()
		if n := p.take(b); n > 0 {
			p.of.mu.Unlock()
			return n, nil
		}
		if p.noWriter || p.noReader {
			p.of.mu.Unlock()
			return 0, io.EOF
		}
		wait := p.wait()
		p.of.mu.Unlock()
		if err := p.of.exec.Await(context.Background(), wait); err != nil {
			return 0, err
		}
	}
}

// take moves bytes from the front to b; mu is held.
func (p *pipe) take(b []byte) int {
	n := copy(b, p.buf[p.readOff:])
	if n > 0 {
		p.skip(n)
	}
	return n
}

// skip drops n bytes from the front; mu is held.
func (p *pipe) skip(n int) {
	p.readOff += n
	if p.readOff == len(p.buf) {
		p.buf, p.readOff = p.buf[:0], 0
		if cap(p.buf) > 512 {
			p.buf = nil
		}
	}
	p.fire()
}

// push writes without waiting; what does not fit is dropped.
func (p *pipe) push(b []byte) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if room := pipeSize - (len(p.buf) - p.readOff); room > 0 && !p.noReader {
		p.buf = append(p.buf, b[:min(room, len(b))]...)
		p.fire()
	}
}

// Write implements io.Writer.
func (p *pipe) Write(b []byte) (int, error) {
	written := 0
	for {
		p.of.mu.Lock()
		if p.noReader || p.noWriter {
			p.of.mu.Unlock()
			return written, io.ErrClosedPipe
		}
		if room := pipeSize - (len(p.buf) - p.readOff); room > 0 && written < len(b) {
			n := min(room, len(b)-written)
			p.buf = append(p.buf, b[written:written+n]...)
			written += n
			p.fire()
		}
		if written == len(b) {
			p.of.mu.Unlock()
			return written, nil
		}
		wait := p.wait()
		p.of.mu.Unlock()
		if err := p.of.exec.Await(context.Background(), wait); err != nil {
			return written, err
		}
	}
}

// Close closes the write end.
func (p *pipe) Close() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.endWrite()
	return nil
}

// closeRead closes the read end.
func (p *pipe) closeRead() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.endRead()
}

// endWrite is Close; mu is held.
func (p *pipe) endWrite() {
	p.noWriter = true
	p.fire()
}

// endRead is closeRead; mu is held.
func (p *pipe) endRead() {
	p.noReader = true
	p.fire()
}
