package agent

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Stdio returns a [Port] over byte streams. From the first call of Next it reads r
// without waiting for the program, so that a host that writes much is never blocked.
// The goroutine that reads r ends when r ends or is closed. The port is an [Elapser]
// and a [Signaller].
func Stdio(r io.Reader, w, stderr io.Writer) Port { return newStdio(r, w, stderr) }

type stdio struct {
	r         io.Reader
	w, stderr io.Writer
	start     time.Time
	begin     sync.Once

	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	signals []error
	deaf    bool
	ended   bool // r is at its end
	told    bool // and Next has said so
}

func newStdio(r io.Reader, w, stderr io.Writer) *stdio {
	//troupe:seam a process of its own has the real clock
	p := &stdio{r: r, w: w, stderr: stderr, start: time.Now()}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// read is the goroutine that drains r.
func (p *stdio) read() {
	in := bufio.NewReaderSize(p.r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		p.mu.Lock()
		if line = bytes.TrimSuffix(line, []byte{'\n'}); len(line) > 0 || err == nil {
			p.lines = append(p.lines, line)
		}
		p.ended = err != nil
		p.changed.Signal()
		deaf := p.deaf
		p.mu.Unlock()
		if err != nil || deaf {
			return
		}
	}
}

// watchSignals makes Next report SIGTERM and SIGINT.
func (p *stdio) watchSignals() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		for s := range signals {
			if s == os.Interrupt {
				p.Signal(ErrInterrupted)
			} else {
				p.Signal(ErrTerminated)
			}
		}
	}()
}

// Signal implements [Signaller].
func (p *stdio) Signal(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, err)
	p.changed.Signal()
}

// Next implements [Port].
func (p *stdio) Next(wait time.Duration) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.deaf {
		p.begin.Do(func() { go p.read() })
	}
	if line, err := p.take(); !errors.Is(err, ErrWaited) || wait == 0 {
		return line, err
	}
	expired := false
	if wait > 0 {
		//troupe:seam a process of its own has the real clock
		timer := time.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			expired = true
			p.changed.Signal()
		})
		defer timer.Stop()
	}
	for {
		p.changed.Wait()
		if line, err := p.take(); !errors.Is(err, ErrWaited) || expired {
			return line, err
		}
	}
}

// Deaf implements [Deafener].
func (p *stdio) Deaf() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf, p.lines = true, nil
}

// take returns what is there already, or ErrWaited.
func (p *stdio) take() ([]byte, error) {
	switch {
	case len(p.signals) > 0:
		err := p.signals[0]
		p.signals = p.signals[1:]
		return nil, err
	case p.deaf:
		return nil, ErrWaited
	case len(p.lines) > 0:
		line := p.lines[0]
		p.lines[0] = nil
		p.lines = p.lines[1:]
		return line, nil
	case p.ended && !p.told:
		p.told = true
		return nil, io.EOF
	}
	return nil, ErrWaited
}

// Write implements [Port].
func (p *stdio) Write(b []byte) error {
	_, err := p.w.Write(b)
	return err
}

// Stderr implements [Port].
func (p *stdio) Stderr(b []byte) { _, _ = p.stderr.Write(b) }

// Elapsed implements [Elapser].
func (p *stdio) Elapsed() time.Duration {
	//troupe:seam a process of its own has the real clock
	return time.Since(p.start)
}
