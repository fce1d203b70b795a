package fast

import (
	"errors"

	"github.com/agent-troupe/troupe/agent"
)

// Program is the agent inside this process. It implements [agent.Program].
type Program struct{}

// AgentName implements [agent.Program].
func (Program) AgentName() string { return "fast" }

// Serve implements [agent.Program].
func (Program) Serve(l agent.Launch, p agent.Port) agent.Exit {
	if err := Serve(&portReader{port: p}, portWriter{p}, l.Getenv); err != nil && !errors.Is(err, agent.ErrTerminated) {
		return agent.Exit{Code: 1}
	}
	return agent.Exit{}
}

type portReader struct {
	port agent.Port
	rest []byte
}

func (r *portReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		line, err := r.port.Next(-1)
		if err != nil {
			return 0, err
		}
		r.rest = append(line, '\n')
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

type portWriter struct{ port agent.Port }

func (w portWriter) Write(b []byte) (int, error) {
	if err := w.port.Write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
