package simtests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// Replay returns an agent that plays the agent's side of the cassette, for
// sdk.Options.Backend. It writes each frame once the host has written all that it wrote
// before that frame in the recording. The first frame of the host, or argument of the
// start, that is not the recorded one fails the test with a diff, and so does one that
// is missing or too many; the agent then exits with code 1.
//
// Compared are the values of all members. Equal count: UUIDs and request ids, as long as
// one stands for one throughout; times, durations and timestamps; what [Record] redacts.
// An answer is compared with the answer to the same request, so that callbacks may answer
// in another order than in the recording. All other frames have to come in their order.
//
// Each start of the agent plays the next process of the recording.
func (c *Cassette) Replay(t Reporter) agent.Program { return c.player(t) }

// Reporter is the part of a *testing.T or a *[World] that a cassette reports to.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func (c *Cassette) player(t Reporter) *tapePlayer {
	return &tapePlayer{c: c, fail: func(format string, args ...any) {
		t.Helper()
		t.Errorf(format, args...)
	}}
}

// OpenCassette connects a client to an agent that plays a cassette, as [World.Open] does
// to a scripted one. A host that does not write what was recorded is a failure of the
// history; see [Cassette.Replay]. Faults that change what the host sees or when it ends
// make a host differ: give a cassette to calm worlds, or after [World.Calm].
func (w *World) OpenCassette(o *sdk.Options, c *Cassette) *sdk.Client {
	w.Helper()
	client, err := w.dial(o, func(o *sdk.Options) *program { return w.program(c.player(w), o) })
	if err != nil {
		w.Fatalf("open a session with a cassette: %v", err)
	}
	return client
}

// tapePlayer is an agent that plays a cassette.
type tapePlayer struct {
	c      *Cassette
	fail   func(format string, args ...any)
	starts atomic.Int64
}

// AgentName implements [agent.Program].
func (p *tapePlayer) AgentName() string { return "cassette" }

// AgentDialect says whose CLI spoke.
func (p *tapePlayer) AgentDialect() agent.Dialect { return p.c.dialect }

// Serve implements [agent.Program].
func (p *tapePlayer) Serve(l agent.Launch, port agent.Port) agent.Exit {
	n := int(p.starts.Add(1)) - 1
	if n >= len(p.c.lives) {
		p.fail("simtests: the agent was started %d times, and the cassette has %d", n+1, len(p.c.lives))
		return agent.Exit{Code: 1}
	}
	t := &tapeTalk{
		life: p.c.lives[n], port: port, hide: newRedactor(l.Env, l.Dir, nil), same: newSameness(),
		lanes: make(map[string][]int), written: make(map[int]bool),
	}
	exit, err := t.play(l.Args)
	if err != nil {
		p.fail("simtests: the host differs from the cassette, process %d: %v", n+1, err)
		return agent.Exit{Code: 1}
	}
	return exit
}

// tapeTalk is one process that is played.
type tapeTalk struct {
	life    []entry
	port    agent.Port
	hide    *redactor
	same    *sameness
	lanes   map[string][]int // entries of the host that it has not written yet, by lane
	written map[int]bool     // entries that it has
	eof     bool
}

func (t *tapeTalk) play(args []string) (agent.Exit, error) {
	for i, e := range t.life {
		if e.Host != nil {
			f, err := protocol.ParseFrame(e.Host)
			if err != nil {
				return agent.Exit{}, fmt.Errorf("entry %d of the cassette: %w", i+1, err)
			}
			t.lanes[laneOf(f)] = append(t.lanes[laneOf(f)], i)
		}
	}
	for i, e := range t.life {
		var err error
		switch {
		case e.Start != nil:
			err = t.start(e.Start, args)
		case e.Agent != nil:
			err = t.say(string(e.Agent))
		case e.Text != "":
			err = t.say(e.Text)
		case e.Host != nil:
			for err == nil && !t.written[i] {
				err = t.hear(e.Host)
			}
		case e.EOF:
			for err == nil && !t.eof {
				err = t.hear(nil)
			}
		case e.Exit != nil:
			return agent.Exit{Code: e.Exit.Code, Signal: e.Exit.Signal}, nil
		}
		if err != nil {
			return agent.Exit{}, err
		}
	}
	for !t.eof { // the recording was cut
		if err := t.hear(nil); err != nil {
			return agent.Exit{}, err
		}
	}
	return agent.Exit{}, nil
}

func (t *tapeTalk) start(recorded, args []string) error {
	hidden := make([]any, len(args))
	for i, a := range args {
		hidden[i] = argument(t.hide.text(a))
	}
	want := make([]any, len(recorded))
	for i, a := range recorded {
		want[i] = argument(a)
	}
	if diff := t.same.differ("arguments", want, hidden); diff != "" {
		return errors.New("the agent is started with other arguments\n" + diff)
	}
	return nil
}

// argument is one that is compared member by member if it is JSON.
func argument(a string) any {
	var v any
	if json.Unmarshal([]byte(a), &v) == nil {
		if _, object := v.(map[string]any); object {
			return v
		}
	}
	return a
}

func (t *tapeTalk) say(line string) error {
	if err := t.port.Write([]byte(t.hide.expand(t.same.actual(line)) + "\n")); err != nil {
		return fmt.Errorf("the host was gone before the agent wrote\n\t%s", short(line))
	}
	return nil
}

// hear takes one line of the host, or the end of its stdin. next is what the cassette
// has here, nil if that is the end.
func (t *tapeTalk) hear(next json.RawMessage) error {
	line, err := t.port.Next(-1)
	switch {
	case errors.Is(err, io.EOF):
		t.eof = true
		if next != nil {
			return fmt.Errorf("the host closed stdin; it has not written\n\t%s", short(string(next)))
		}
		return nil
	case err != nil && next != nil:
		return fmt.Errorf("the host ended the agent (%w); it has not written\n\t%s", err, short(string(next)))
	case err != nil:
		return fmt.Errorf("the host ended the agent (%w) before it closed stdin", err)
	}
	hidden := t.hide.json(line)
	f, err := protocol.ParseFrame(hidden)
	if err != nil {
		return fmt.Errorf("the host wrote what is no frame: %w", err)
	}
	lane := laneOf(f)
	if len(t.lanes[lane]) == 0 {
		return fmt.Errorf("the host wrote what the cassette does not have\n\t%s", short(string(hidden)))
	}
	i := t.lanes[lane][0]
	t.lanes[lane] = t.lanes[lane][1:]
	t.written[i] = true
	recorded := t.life[i].Host
	both := fmt.Sprintf("the cassette has\n\t%s\nthe host wrote\n\t%s", short(string(recorded)), short(string(hidden)))
	if had, err := protocol.ParseFrame(recorded); err != nil || had.Type != f.Type || had.Subtype != f.Subtype {
		return fmt.Errorf("entry %d is another frame\n%s", i+1, both)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(recorded, &want), json.Unmarshal(hidden, &got)); err != nil {
		return err
	}
	if diff := t.same.differ(f.Type, want, got); diff != "" {
		return fmt.Errorf("entry %d\n%s\n%s", i+1, diff, both)
	}
	return nil
}

// laneOf names the frames of the host among which the order counts: answers to one
// request, or all others.
func laneOf(f protocol.Frame) string {
	if f.Type == "control_response" {
		return f.RequestID
	}
	return ""
}

func short(s string) string {
	const most = 2000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
