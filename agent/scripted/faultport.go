package scripted

import (
	"bytes"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
)

// faultPort is a port on which everything goes wrong that the script asks for.
type faultPort struct {
	agent.Port

	m     *Misbehaviour
	die   *Die // after so many lines
	lines int
	noise int
	owed  bool // a newline that was held back
	ended bool // the host closed stdin
	deaf  bool
}

// spoiled wraps p. It stays an Elapser if it is one.
func spoiled(p agent.Port, m *Misbehaviour, die *Die) (agent.Port, *faultPort) {
	f := &faultPort{Port: p, m: m, die: die}
	if m.NeverRead {
		f.Deaf()
	}
	if e, ok := p.(agent.Elapser); ok {
		return struct {
			*faultPort
			agent.Elapser
		}{f, e}, f
	}
	return f, f
}

// Deaf implements [agent.Deafener]; over a port that cannot stop reading, what
// it reads is thrown away.
func (f *faultPort) Deaf() {
	f.deaf = true
	if d, ok := f.Port.(agent.Deafener); ok {
		d.Deaf()
	}
}

// Next implements [agent.Port].
func (f *faultPort) Next(wait time.Duration) ([]byte, error) {
	for {
		line, err := f.Port.Next(wait)
		switch {
		case err == nil && f.deaf:
		case errors.Is(err, agent.ErrTerminated) && f.m.TrapTerm:
		case errors.Is(err, io.EOF) && f.deaf && !f.ended:
			f.ended = true
		default:
			f.ended = f.ended || errors.Is(err, io.EOF)
			return line, err
		}
	}
}

// Write implements [agent.Port].
func (f *faultPort) Write(p []byte) error {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			n = len(p)
		}
		if err := f.line(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (f *faultPort) line(line []byte) error {
	if f.plain() {
		return f.Port.Write(line)
	}
	copies := 1
	if bytes.HasPrefix(line, []byte(`{"type":"control_request"`)) {
		copies += f.m.RepeatRequests
	}
	for range copies {
		if f.die != nil && f.lines >= f.die.Lines {
			return &agent.ExitError{Exit: agent.Exit{Code: f.die.Code, Signal: f.die.Signal}}
		}
		f.lines++
		if err := f.ending(line); err != nil {
			return err
		}
	}
	if len(f.m.Noise) > 0 {
		f.noise++
		return f.ending([]byte(f.m.Noise[(f.noise-1)%len(f.m.Noise)] + "\n"))
	}
	if f.die != nil && f.lines >= f.die.Lines {
		return &agent.ExitError{Exit: agent.Exit{Code: f.die.Code, Signal: f.die.Signal}}
	}
	return nil
}

// plain reports whether lines go through as they are.
func (f *faultPort) plain() bool {
	return f.die == nil && f.m.RepeatRequests == 0 && f.m.Newline == "" && f.m.Split == "" && len(f.m.Noise) == 0
}

// ending writes a line with the line end asked for.
func (f *faultPort) ending(line []byte) error {
	text := bytes.TrimSuffix(line, []byte{'\n'})
	var out []byte
	switch f.m.Newline {
	case "crlf":
		out = append(append(out, text...), "\r\n"...)
	case "blank":
		out = append(append(out, text...), "\n\n"...)
	case "missing":
		if f.owed {
			out = append(out, '\n')
		}
		out = append(out, text...)
		if f.owed = bytes.HasPrefix(line, []byte(`{"type":"result"`)); !f.owed {
			out = append(out, '\n')
		}
	default:
		out = line
	}
	return f.pieces(out)
}

// pieces writes b in the pieces asked for.
func (f *faultPort) pieces(b []byte) error {
	switch f.m.Split {
	case "bytes":
		for i := range b {
			if err := f.Port.Write(b[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	case "halves":
		if err := f.Port.Write(b[:len(b)/2]); err != nil {
			return err
		}
		return f.Port.Write(b[len(b)/2:])
	case "runes":
		from := 0
		for i := 1; i < len(b); i++ {
			if !utf8.RuneStart(b[i]) {
				if err := f.Port.Write(b[from:i]); err != nil {
					return err
				}
				from = i
			}
		}
		b = b[from:]
	}
	return f.Port.Write(b)
}

// linger keeps the agent alive after its conversation has ended at EOF, as far
// as the script wants that.
func (f *faultPort) linger(exit agent.Exit) agent.Exit {
	if !f.ended || exit.Signal != "" {
		return exit
	}
	wait := f.m.ExitDelay
	if f.m.IgnoreEOF {
		wait = -1
	} else if wait == 0 {
		return exit
	}
	for {
		switch _, err := f.Next(wait); {
		case err == nil: // whatever is said now
		case errors.Is(err, agent.ErrInterrupted):
		case errors.Is(err, agent.ErrTerminated):
			return agent.Exit{Code: 143}
		case errors.Is(err, agent.ErrWaited):
			return exit
		default:
			return agent.Exit{Signal: "KILL"}
		}
	}
}
