package simtests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/agent"
)

// Cassette is a recorded session: what a real agent and its host wrote to each other, in
// order, without secrets. Make one with [Record], keep it with [Cassette.Save], and play
// the agent's side of it with [Cassette.Replay] or [World.OpenCassette].
//
// A cassette is a file of JSON lines. The first names the format and whose CLI spoke:
// {"cassette":1,"dialect":"claude"}. Each of the others has one key:
//
//	start  the agent's arguments, when a process begins
//	host   a frame of the host's
//	agent  a frame of the agent's
//	text   a line of the agent's that is not JSON
//	eof    true: the host closed stdin
//	exit   how the agent ended: {"code":0} or {"signal":"KILL"}
//
// ${cwd}, ${home}, ${tmp}, ${user} and ${host} take the place of what they name, and ***
// that of a secret. A cassette can be edited by hand.
type Cassette struct {
	dialect agent.Dialect
	lives   [][]entry // one of each process
}

const cassetteVersion = 1

type entry struct {
	Start []string        `json:"start,omitempty"`
	Host  json.RawMessage `json:"host,omitempty"`
	Agent json.RawMessage `json:"agent,omitempty"`
	Text  string          `json:"text,omitempty"`
	EOF   bool            `json:"eof,omitempty"`
	Exit  *exitEntry      `json:"exit,omitempty"`
}

type exitEntry struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

type cassetteHead struct {
	Cassette int           `json:"cassette"`
	Dialect  agent.Dialect `json:"dialect"`
}

// CassetteError says what is wrong with a cassette, and where.
type CassetteError struct {
	Line    int // from 1
	Problem string
}

// Error implements error.
func (e *CassetteError) Error() string {
	return fmt.Sprintf("simtests: line %d of the cassette: %s", e.Line, e.Problem)
}

// LoadCassette reads a cassette from a file.
func LoadCassette(path string) (*Cassette, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load a cassette: %w", err)
	}
	c, err := ParseCassette(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseCassette reads a cassette. Errors are of type *[CassetteError].
func ParseCassette(b []byte) (*Cassette, error) {
	c := &Cassette{}
	for i, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		bad := func(format string, args ...any) error { return &CassetteError{i + 1, fmt.Sprintf(format, args...)} }
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if i == 0 {
			var head cassetteHead
			if err := d.Decode(&head); err != nil || head.Cassette != cassetteVersion {
				return nil, bad(`want {"cassette":%d,"dialect":...}`, cassetteVersion)
			}
			if head.Dialect != agent.Claude && head.Dialect != agent.Qoder {
				return nil, bad("the dialect %q is not known", head.Dialect)
			}
			c.dialect = head.Dialect
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, bad("%v", err)
		}
		if e.Start != nil {
			c.lives = append(c.lives, nil)
		}
		if len(c.lives) == 0 {
			return nil, bad("nothing comes before the first start")
		}
		last := len(c.lives) - 1
		c.lives[last] = append(c.lives[last], e)
	}
	if len(c.lives) == 0 {
		return nil, &CassetteError{1, "no agent was started"}
	}
	return c, nil
}

// Encode returns the cassette as [ParseCassette] reads it.
func (c *Cassette) Encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(cassetteHead{cassetteVersion, c.dialect})
	for _, life := range c.lives {
		for _, one := range life {
			err = errors.Join(err, e.Encode(one))
		}
	}
	return out.Bytes(), err
}

// Save writes the cassette to a file, mode 0600.
func (c *Cassette) Save(path string) error {
	b, err := c.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
