package simtests

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
)

// relayEnv names the socket of the test that started this program as an agent.
const relayEnv = "TROUPE_SIM_RELAY"

// parcel is what a relay and its test tell each other. The first one of the relay has
// the launch.
type parcel struct {
	Launch *agent.Launch `json:"launch,omitempty"` // to the test
	Signal string        `json:"signal,omitempty"` // to the test: TERM or INT
	End    bool          `json:"end,omitempty"`    // to the test: stdin was closed
	Bytes  []byte        `json:"bytes,omitempty"`  // of stdin to the test, of stdout from it
	Stderr []byte        `json:"stderr,omitempty"` // from the test
	Exit   *agent.Exit   `json:"exit,omitempty"`   // from the test: nothing follows
}

// wire sends parcels, one at a time.
type wire struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (w *wire) send(p parcel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(p)
}

// --- the process -----------------------------------------------------------

// relay is the agent's process: it carries bytes and signals between its host and the
// test that plays the script. It returns the exit code.
func relay(socket string) int {
	exit, err := carry(socket)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "simtests: the relay of an agent:", err) // there is no other place to report it
		return 70
	}
	if self, err := os.FindProcess(os.Getpid()); exit.Signal != "" && err == nil {
		_ = self.Kill() // and does not return
	}
	return exit.Code
}

func carry(socket string) (agent.Exit, error) {
	c, err := net.Dial("unix", socket) //nolint:gosec // of the test that started this program
	if err != nil {
		return agent.Exit{}, err
	}
	dir, _ := os.Getwd() // "" when it is gone
	to := &wire{enc: json.NewEncoder(c)}
	if err := to.send(parcel{Launch: &agent.Launch{Args: os.Args[1:], Env: os.Environ(), Dir: dir, Pid: os.Getpid()}}); err != nil {
		return agent.Exit{}, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	exec := kernel.GoExecutor{}
	exec.Go(func() {
		for s := range signals {
			name := "TERM"
			if s == os.Interrupt {
				name = "INT"
			}
			_ = to.send(parcel{Signal: name}) // to a test that is gone, nothing
		}
	})
	exec.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := os.Stdin.Read(buf)
			if to.send(parcel{Bytes: buf[:n], End: err != nil}) != nil || err != nil {
				return
			}
		}
	})
	from := json.NewDecoder(c)
	for {
		var p parcel
		if err := from.Decode(&p); err != nil {
			return agent.Exit{}, fmt.Errorf("the test is gone: %w", err)
		}
		_, _ = os.Stdout.Write(p.Bytes) // a host that is gone reads nothing
		_, _ = os.Stderr.Write(p.Stderr)
		if p.Exit != nil {
			return *p.Exit, nil
		}
	}
}

// --- the test --------------------------------------------------------------

// relays are the processes of one session's agent.
type relays struct {
	p        *program
	dir      string
	listener net.Listener
}

// asProcess has the options start the test's own program, which relays to p.
func (w *World) asProcess(p *program, o *sdk.Options) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("simtests: find the program of the test: %w", err)
	}
	r := &relays{p: p}
	//troupe:seam on this level nothing follows from the seed
	if r.dir, err = os.MkdirTemp("", "troupe-sim-"); err != nil {
		return fmt.Errorf("simtests: %w", err)
	}
	if r.listener, err = net.Listen("unix", filepath.Join(r.dir, "s")); err != nil {
		return fmt.Errorf("simtests: %w", err)
	}
	w.mu.Lock()
	w.relays = append(w.relays, r)
	w.mu.Unlock()
	kernel.GoExecutor{}.Go(r.accept)
	o.Env = maps.Clone(o.Env)
	if o.Env == nil {
		o.Env = make(map[string]string)
	}
	o.Env[relayEnv] = r.listener.Addr().String()
	o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: exe})
	if p.AgentDialect() == agent.Qoder {
		o.Backend = sdk.Qoder(sdk.QoderConfig{Path: exe})
	}
	return nil
}

// accept takes the connections of processes, until the world ends.
func (r *relays) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		kernel.GoExecutor{}.Go(func() { r.serve(c) })
	}
}

func (r *relays) close() {
	_ = r.listener.Close()
	_ = os.RemoveAll(r.dir) // its own directory; a rest of it is harmless
}

// serve plays the script for one process.
func (r *relays) serve(c net.Conn) {
	defer func() { _ = c.Close() }() // either end may be first
	from, to := json.NewDecoder(c), &wire{enc: json.NewEncoder(c)}
	var first parcel
	if err := from.Decode(&first); err != nil || first.Launch == nil {
		return
	}
	stdin, feed := io.Pipe()
	defer func() { _ = stdin.Close() }()
	port := agent.Stdio(stdin, sender(func(b []byte) parcel { return parcel{Bytes: b} }, to), sender(func(b []byte) parcel { return parcel{Stderr: b} }, to))
	signals, ok := port.(agent.Signaller)
	if !ok {
		panic("simtests: the port over byte streams takes no signals")
	}
	kernel.GoExecutor{}.Go(func() {
		defer func() { _ = feed.Close() }()
		for {
			var p parcel
			if from.Decode(&p) != nil { // the process is gone
				signals.Signal(agent.ErrKilled)
				return
			}
			switch p.Signal {
			case "TERM":
				signals.Signal(agent.ErrTerminated)
			case "INT":
				signals.Signal(agent.ErrInterrupted)
			}
			_, _ = feed.Write(p.Bytes) // an agent that has ended reads nothing
			if p.End {
				_ = feed.Close()
			}
		}
	})
	exit := r.p.Serve(*first.Launch, port)
	_ = to.send(parcel{Exit: &exit}) // a process that was killed is gone
}

// sending is a writer of parcels.
type sending struct {
	as func([]byte) parcel
	to *wire
}

func sender(as func([]byte) parcel, to *wire) io.Writer { return sending{as, to} }

// Write implements [io.Writer].
func (s sending) Write(b []byte) (int, error) {
	if err := s.to.send(s.as(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}
