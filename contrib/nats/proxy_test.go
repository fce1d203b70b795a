package troupenats

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is between a program and its server.
type proxy struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	up    chan struct{} // closed while there is a network
	deafs bool          // answers are lost
	all   map[net.Conn]bool
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	require.NoError(t, err)
	p := &proxy{l: l, to: strings.TrimPrefix(url, "nats://"), up: make(chan struct{}), all: map[net.Conn]bool{}}
	close(p.up)
	t.Cleanup(func() { _ = l.Close(); p.reset() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", p.to) //nolint:noctx // a test
			if err != nil {
				_ = from.Close()
				continue
			}
			p.mu.Lock()
			p.all[from], p.all[to] = true, true
			p.mu.Unlock()
			go p.pass(from, to, false)
			go p.pass(to, from, true)
		}
	}()
	return p
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) pass(from, to net.Conn, answers bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		up := p.up
		p.mu.Unlock()
		<-up
		p.mu.Lock()
		lost := answers && p.deafs
		p.mu.Unlock()
		if !lost {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stop keeps what both sides send until restore is called.
func (p *proxy) stop() (restore func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := make(chan struct{})
	p.up = up
	return func() { close(up) }
}

// reset ends all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		_ = c.Close()
	}
	clear(p.all)
}

// deaf loses answers for a while, again and again, and ends the connections then. Each time it
// calls then.
func (p *proxy) deaf(every, lasts time.Duration, then func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lose := true; ; lose = !lose {
			wait := every
			if !lose {
				wait = lasts
			}
			select {
			case <-end:
				return
			case <-time.After(wait):
			}
			p.mu.Lock()
			p.deafs = lose
			p.mu.Unlock()
			if !lose {
				p.reset()
				then()
			}
		}
	}()
	return func() { close(end); <-ended; p.mu.Lock(); p.deafs = false; p.mu.Unlock() }
}
