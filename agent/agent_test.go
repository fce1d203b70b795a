package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	f := parseFlags([]string{
		"--output-format", "stream-json", "--verbose", "--model=m", "--resume", "id", "--continue",
		"--allowedTools=Bash(git *, x),Read", "--tools=", "--mcp-config", `{"a":1}`, "stray",
		"--allowed-tools", "Bash(a, b)", "--allowed-tools", "Write", "--max-turns=3", "--debug",
	})
	require.Equal(t, "stream-json", f.last("output-format"))
	require.Equal(t, "id", f.last("resume"))
	require.True(t, f.has("continue"))
	require.True(t, f.has("tools"))
	require.Empty(t, f.last("tools"))
	require.InDelta(t, 3, f.number("max-turns"), 0)
	require.Zero(t, f.number("model"))
	require.Equal(t, []rule{
		{"Bash", "git *, x"}, {tool: "Read"}, {"Bash", "a, b"}, {tool: "Write"},
	}, f.rules("allowedTools", "allowed-tools"))
}

func TestRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, tool, command string
		want                bool
	}{
		{"Bash", "Bash", "rm", true},
		{"Bash", "Bashful", "rm", false},
		{"Bash(*)", "Bash", "rm", true},
		{"Bash(git *)", "Bash", "git status", true},
		{"Bash(git *)", "Bash", "gitk", false},
		{"Bash(git:*)", "Bash", "git status", true},
		{"Bash(ls)", "Bash", "ls", true},
		{"Bash(ls)", "Bash", "ls -l", false},
		{"Bash(a*c)", "Bash", "abc", true},
		{"mcp__srv", "mcp__srv__tool", "", true},
		{"mcp__srv__tool", "mcp__srv__tool", "", true},
		{"mcp__s", "mcp__srv__tool", "", false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, parseRule(tt.rule).covers(tt.tool, Object{"command": tt.command}), "%+v", tt)
	}
}

func TestGetenv(t *testing.T) {
	t.Parallel()
	l := Launch{Env: []string{"A=1", "B", "A=2=3", "=x"}}
	require.Equal(t, "2=3", l.Getenv("A"))
	require.Empty(t, l.Getenv("B"))
	require.NotEqual(t, seedOf("a"), seedOf("b"))
	require.EqualValues(t, 17, seedOf("17"))
}

func TestObject(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Object{"z": 1, "a": Object{"subtype": "s", "b": nil}, "type": "t"})
	require.NoError(t, err)
	require.Equal(t, `{"type":"t","a":{"subtype":"s","b":null},"z":1}`, string(b)) //nolint:testifylint // the order of the keys counts
	b, err = encode(Object{"html": "<&>", "none": Object(nil)})
	require.NoError(t, err)
	require.Equal(t, `{"html":"<&>","none":null}`, string(b)) //nolint:testifylint // the bytes count
	_, err = encode(Object{"f": math.Inf(1)})
	require.ErrorContains(t, err, "f: ")
}

// What objects are made of is written as the encoder of encoding/json writes it.
func TestObjectsAreWrittenAsTheEncoderDoes(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		"", "plain", `quote " and \`, "line\nbreak", "\x00\x1f", "\x7f", "<&>", "\u2028 ü", "\xff", true, false, 0, -7, 1 << 40, 1.5, nil,
		[]any{}, []any(nil), []any{"a", 1, nil, []any{true}}, []Object{{"b": 1}, nil}, []Object(nil), []string{"x", "\n"}, json.RawMessage(`{ "raw": 1 }`), map[string]any{"z": 1, "a": "ü"},
	} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(v))
		got, err := encode(v)
		require.NoError(t, err)
		assert.Equal(t, strings.TrimSuffix(want.String(), "\n"), string(got), "%#v", v)
	}
	many := Object{}
	for i := range 40 {
		many[fmt.Sprint("k", i)] = i
	}
	got, err := encode(many)
	require.NoError(t, err)
	want, err := json.Marshal(map[string]any(many))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestChunks(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{""}, Chunks("", 3))
	require.Equal(t, []string{"grü", "ße"}, Chunks("grüße", 3))
}

func TestUUIDs(t *testing.T) {
	t.Parallel()
	a, b := newIDs(1), newIDs(1)
	seen := map[string]bool{}
	for range 1000 {
		id := a.uuid()
		require.Equal(t, id, b.uuid())
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.NotEqual(t, newIDs(1).uuid(), newIDs(2).uuid())
}

// idle is a port on which time passes and nothing comes.
type idle struct{ now time.Duration }

func (p *idle) Next(wait time.Duration) ([]byte, error) {
	if wait < 0 {
		return nil, ErrKilled
	}
	p.now += wait
	return nil, ErrWaited
}
func (*idle) Write([]byte) error       { return nil }
func (*idle) Stderr([]byte)            {}
func (p *idle) Elapsed() time.Duration { return p.now }

// over is a port that says again and again that the host closed stdin.
type over struct {
	idle
	told int
}

func (p *over) Next(time.Duration) ([]byte, error) {
	if p.told++; p.told == 100 {
		return nil, ErrKilled
	}
	return nil, io.EOF
}

// Whoever waits for a host that has left ends, played or not.
func TestNothingWaitsForAHostThatHasLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Conversation) Exit{
		"run":  (*Conversation).Run,
		"play": func(c *Conversation) Exit { x, _ := c.Play(); return x },
	} {
		c := Open(Launch{}, &over{}, Config{})
		c.e.spawn(nil, func(s *Strand) { _ = s.wait(-1, func() bool { return false }) })
		require.Equal(t, Exit{Code: 1}, end(c), name)
	}
}

// pump runs strands until nothing is left to wait for.
func pump(e *engine) {
	for e.exit == nil {
		e.schedule()
		if len(e.strands) == 0 {
			return
		}
		e.receive()
	}
}

// Strands sleep side by side and wake in order of their deadlines.
func TestStrandsSleep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := &idle{}
		e := newEngine(Launch{}, p, Config{})
		defer e.stopStrands()
		naps := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 50), 1, 5), 1, 6).Draw(r, "naps")
		longest, woken := 0, 0
		for _, list := range naps {
			total := 0
			for _, n := range list {
				total += n
			}
			longest = max(longest, total)
			e.spawn(nil, func(s *Strand) {
				at := time.Duration(0)
				for _, n := range list {
					at += time.Duration(n)
					require.NoError(r, s.Sleep(time.Duration(n)))
					require.Equal(r, at, p.now)
				}
				require.Equal(r, time.Duration(total), s.slept)
				woken++
			})
		}
		pump(e)
		require.Nil(r, e.exit)
		require.Equal(r, len(naps), woken)
		require.Equal(r, time.Duration(longest), p.now)
	})
}

func TestScopeEndsWaits(t *testing.T) {
	t.Parallel()
	e := newEngine(Launch{}, &idle{}, Config{})
	outer := &scope{}
	inner := &scope{parent: outer}
	var errs []error
	for _, sc := range []*scope{outer, inner, nil} {
		e.spawn(sc, func(s *Strand) { errs = append(errs, s.Sleep(time.Hour)) })
	}
	e.spawn(nil, func(s *Strand) {
		require.NoError(t, s.Sleep(time.Minute))
		outer.err = errAborted
	})
	pump(e)
	require.Equal(t, []error{errAborted, errAborted, nil}, errs)
	require.True(t, inner.within(outer))
	require.False(t, outer.within(inner))
}

// Strands that still wait when the agent ends are unwound, and say nothing more.
func TestStrandsUnwind(t *testing.T) {
	t.Parallel()
	e := newEngine(Launch{}, &idle{}, Config{})
	var got error
	e.spawn(nil, func(s *Strand) {
		got = s.wait(-1, func() bool { return false })
		e.send(Object{"type": "too late"})
	})
	e.spawn(nil, func(*Strand) { t.Error("never began") })
	e.strands[1].ready, e.strands[1].waiting = func() bool { return false }, true
	e.schedule()
	e.quit(Exit{Code: 5})
	e.stopStrands()
	require.ErrorIs(t, got, errOver)
	require.Empty(t, e.out)
}

func TestExitErrorText(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &ExitError{Exit{Code: 3}}, "agent: ends with code 3")
	require.EqualError(t, &ExitError{Exit{Signal: "KILL"}}, "agent: ends by signal KILL")
	require.ErrorIs(t, errTerminated, errAborted)
	require.NotErrorIs(t, errAborted, errTerminated)
}
