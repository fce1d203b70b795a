package transport

import (
	"bytes"
	"io"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// pump cuts the agent's stdout into frames and sends them to the router. It reads only
// while there is credit.
type pump struct {
	*Link
	out     io.Reader
	lines   *protocol.Splitter
	frames  []protocol.Frame
	charged int64 // bytes of the unfinished line that the budget granted
	thrift  thrift
	kept    int  // bytes of messages in the present read
	shares  bool // a frame of the present read shares the memory that it was read into
	woken   bool // there is something to read
	marked  bool // a byte order mark was reported
	cut     bool // the line has no newline: the agent ended in it
	role    *kernel.Role
}

func newPump(k *Link) *pump {
	return &pump{Link: k, out: k.proc.Stdout(), lines: protocol.NewSplitter(k.cfg.MaxLine)}
}

func (p *pump) start() {
	p.role = p.cfg.Role(p.job)
	p.role.Start()
}

// job reads, and has its worker run what that calls back: a request does not wait
// for a goroutine to be woken. Nor does the reader wait for a callback that takes
// its time: another goroutine then has the role.
func (p *pump) job(w *kernel.Worker) {
	for w.HasRole() && !p.rests() {
		if !p.read() {
			w.EndRole()
			p.end()
			return
		}
		if len(p.frames) > 0 {
			p.put(w)
			w.Run()
		}
	}
}

// end is when the agent's output has ended.
func (p *pump) end() {
	p.put(nil)
	p.cfg.Budget.Release(p.charged)
	p.cfg.Budget.Done(p.Link)
	p.outputEnded()
	p.mute()
}

// rests reports whether the reader can be parked until there is something to read. An
// idle session waits with the poller, if its process supports that, without a goroutine
// and with no buffer larger than the first. While the agent works the same holds for an
// agent in memory: it wakes the reader for the price of waking a goroutine.
func (p *pump) rests() bool {
	works := p.works.Load()
	memory, cheap := p.proc.(*memoryProcess)
	if p.woken || p.lines.Pending() > 0 || works && !cheap {
		p.woken = false
		return false
	}
	p.refund(&p.charged)
	if !works {
		p.lines.Rest()
		p.cfg.Idle()
		if cheap {
			memory.rest()
		}
	}
	a, ok := p.proc.(announcer)
	p.inStdout.Store(true) // before the watch: wake may run at once
	if ok && a.OnStdout(p.wake) {
		return true
	}
	p.inStdout.Store(false)
	return false
}

// wake continues after a rest.
func (p *pump) wake() {
	p.inStdout.Store(false)
	p.woken = true
	p.role.Take()
}

// read reports whether there may be more to read.
func (p *pump) read() bool {
	if p.awaitCredit(p.lines, &p.charged) != nil {
		p.Giveup(session.ErrConsumerStalled) // the agent is gone and its output has no consumer
		return false
	}
	p.inStdout.Store(true)
	buf := p.lines.Buffer()
	n, err := p.out.Read(buf)
	p.inStdout.Store(false)
	p.lines.Commit(n)
	if lines := bytes.Count(buf[:n], []byte{'\n'}); cap(p.frames) == 0 && lines > 1 {
		p.frames = make([]protocol.Frame, 0, lines) // room for all, as a stream has many in one read
	}
	for line, ok := p.lines.Next(); ok; line, ok = p.lines.Next() {
		p.take(line)
	}
	if err != nil {
		if line, ok := p.lines.Finish(); ok {
			p.cut = true
			p.take(line)
		}
	}
	p.thrift.read(n, p.kept)
	if p.kept = 0; p.shares {
		p.lines.Keep()
	} else {
		p.lines.Release()
	}
	p.shares = false
	return err == nil
}

// put sends the router the frames that were read.
func (p *pump) put(w *kernel.Worker) {
	if len(p.frames) > 0 {
		p.cfg.Router(w, machine.FramesRead{Frames: p.frames, Pressed: p.mustRead()})
		p.frames = nil
	}
}

func (p *pump) take(line protocol.Line) {
	if line.Oversize > 0 {
		p.skip(line)
		return
	}
	for data := p.unmarked(line.Data); len(data) > 0; {
		var rest []byte
		f, err := protocol.ParseFrame(data)
		if err != nil {
			var first []byte
			if first, rest = protocol.CutFrame(data); rest != nil {
				f, err = protocol.ParseFrame(first)
			}
			if err != nil || rest != nil && f.Type == "" {
				p.broken(data)
				return
			}
		}
		data = rest
		p.add(f)
	}
}

// byteOrderMark begins a text in UTF-8, where some programs of Windows write it.
const byteOrderMark = "\ufeff"

// unmarked takes a byte order mark off a line that begins with a frame.
func (p *pump) unmarked(line []byte) []byte {
	rest, found := bytes.CutPrefix(line, []byte(byteOrderMark))
	if !found {
		return line
	}
	rest = bytes.TrimSpace(rest)
	if first, _ := protocol.CutFrame(rest); len(rest) > 0 {
		if f, err := protocol.ParseFrame(first); err != nil || f.Type == "" {
			return line
		}
	}
	if !p.marked {
		p.marked = true
		p.cfg.Emit(&session.WarningIssued{Problem: "the agent's output has a byte order mark, which was skipped"})
	}
	return rest
}

// broken handles a line that is not a frame. A waiter may depend on its content.
func (p *pump) broken(line []byte) {
	if bytes.HasPrefix(line, []byte(machine.EchoOpen+`"`+machine.OwnID)) {
		p.put(nil) // what came before it
		p.cfg.Router(nil, machine.Echoed{Head: bytes.Clone(head(line))})
		return
	}
	_, err := protocol.ParseFrame(line)
	p.noise.add(append(bytes.Clone(head(line)), '\n'))
	p.cfg.Emit(&session.NoiseLine{Err: err})
	if line[0] == '{' && !p.cut {
		p.frames = append(p.frames, protocol.OversizeFrame(bytes.Clone(head(line)), 0, 0))
	}
}

// add takes a frame.
func (p *pump) add(f protocol.Frame) {
	if n := int64(len(f.Raw)); n > machine.LargeLine {
		// The line's own charge replaces what it was granted so far.
		p.cfg.Budget.Charge(n - p.charged)
		p.cfg.Budget.Done(p.Link)
		p.charged = 0
	}
	switch {
	case f.Type == protocol.TypeControlRequest && len(f.Raw) <= machine.LargeLine: // may stay open for long
		f.Raw = bytes.Clone(f.Raw) // what it knows of itself are offsets
	case !machine.IsControl(f.Type):
		f.Raw = p.thrift.keep(f.Raw)
		p.kept += len(f.Raw)
		p.shares = true
	default:
		p.shares = true
	}
	p.frames = append(p.frames, f)
}

// mute ends an agent that still runs after the end of its stdout, because it can no longer
// send an answer or a result.
func (k *Link) mute() {
	limit := &session.TimeoutError{What: "the exit of an agent whose output has ended", Limit: k.cfg.Graces.Output}
	ctx, cancel := kernel.WithTimeout(k.life, k.cfg.Clock, limit)
	defer cancel()
	if k.cfg.Exec.Await(ctx, k.proc.Exited()) == nil || k.life.Err() != nil {
		return
	}
	k.cfg.Router(nil, machine.Mute{})
}

// awaitCredit waits until the agent has taken some of its answers, until the router
// has handled what was read, until the consumer has made room, and, for a line that
// grows large, until the runtime's budget grants more.
func (k *Link) awaitCredit(lines *protocol.Splitter, charged *int64) error {
	for wait := k.writer.crammed(); wait != nil; wait = k.writer.crammed() {
		k.readerWaits("agent to take its answers")
		err := k.cfg.Exec.Await(k.reading, wait)
		k.readerWaits("")
		if err != nil {
			return err
		}
	}
	for wait := k.credit(); wait != nil; wait = k.credit() {
		if err := k.cfg.Exec.Await(k.reading, wait); err != nil {
			return err
		}
	}
	pending := int64(lines.Pending())
	switch {
	case pending <= machine.LargeLine:
		k.refund(charged)
	case pending > *charged:
		grant := max(pending-*charged, machine.LargeLine)
		k.readerWaits("room for a large line among those of all sessions")
		err := k.cfg.Budget.Acquire(k.reading, k.cfg.Exec, k, grant)
		k.readerWaits("")
		if err != nil {
			return err
		}
		*charged += grant
	}
	return nil
}

// refund gives back what a line was granted that ended as none to keep: above the
// ceiling, or no frame.
func (k *Link) refund(charged *int64) {
	if *charged > 0 {
		k.cfg.Budget.Release(*charged)
		k.cfg.Budget.Done(k)
		*charged = 0
	}
}

// mustRead reports whether the reader has to continue without credit: the agent does
// not read its input, or has exited.
func (k *Link) mustRead() bool { return !k.up.Load() || k.writer.busy.Load() }

// credit returns the channel that the reader has to wait for, or nil.
func (k *Link) credit() <-chan struct{} {
	if wait := k.cfg.Room(); wait != nil {
		return wait
	}
	if paused := k.paused.Load(); paused != nil {
		return *paused
	}
	return nil
}

// pause has the reader wait, and asks for it again if it must not.
func (k *Link) pause() {
	paused := make(chan struct{})
	k.paused.CompareAndSwap(nil, &paused)
	if k.mustRead() {
		k.pressed()
	}
}

// resume lets the reader continue.
func (k *Link) resume() {
	if paused := k.paused.Swap(nil); paused != nil {
		close(*paused)
	}
}

// pressed asks for a reader that waits, because the agent does not take what is
// written to it, or has exited.
func (k *Link) pressed() {
	if k.paused.Load() != nil {
		k.cfg.Router(nil, machine.ReaderAsks{Pressed: true})
	}
}

// skip reports a line above the ceiling.
func (p *pump) skip(line protocol.Line) {
	p.cfg.Emit(&session.OversizeLine{Length: line.Oversize, Ceiling: p.maxLine(), Head: string(line.Head)})
	p.frames = append(p.frames, protocol.OversizeFrame(line.Head, line.Oversize, p.maxLine()))
}

func (k *Link) maxLine() int {
	if k.cfg.MaxLine > 0 {
		return k.cfg.MaxLine
	}
	return protocol.DefaultMaxLine
}

func head(b []byte) []byte { return b[:min(len(b), 256)] }

// pumpStderr drains the agent's stderr always, so that the agent never blocks
// on it.
func (k *Link) pumpStderr() {
	defer k.outputEnded()
	buf := make([]byte, 512)
	var line []byte
	flush := func() {
		if len(line) > 0 && k.cfg.Stderr != nil {
			k.cfg.Stderr(string(bytes.TrimRight(line, "\r")))
		}
		line = line[:0]
	}
	for {
		k.inStderr.Store(true)
		n, err := k.proc.Stderr().Read(buf)
		k.inStderr.Store(false)
		k.stderr.add(buf[:n])
		for rest := buf[:n]; ; {
			cut := bytes.IndexByte(rest, '\n')
			if cut < 0 {
				line = append(line, rest...)
				if len(line) > 64<<10 {
					flush()
				}
				break
			}
			line = append(line, rest[:cut]...)
			flush()
			rest = rest[cut+1:]
		}
		if err != nil {
			flush()
			return
		}
	}
}
