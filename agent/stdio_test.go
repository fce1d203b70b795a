package agent

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStdioLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	p := Stdio(strings.NewReader("a\n\nb\r\n"+long+"\nlast"), io.Discard, io.Discard)
	for _, want := range []string{"a", "", "b\r", long, "last"} {
		line, err := p.Next(-1)
		require.NoError(t, err)
		require.Equal(t, want, string(line))
	}
	_, err := p.Next(-1)
	require.ErrorIs(t, err, io.EOF)
	_, err = p.Next(time.Millisecond)
	require.ErrorIs(t, err, ErrWaited, "the end is told once")
}

func TestStdioWaits(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := Stdio(r, io.Discard, io.Discard)
	_, err := p.Next(0)
	require.ErrorIs(t, err, ErrWaited)
	_, err = p.Next(5 * time.Millisecond)
	require.ErrorIs(t, err, ErrWaited)
	elapser, ok := p.(Elapser)
	require.True(t, ok)
	require.GreaterOrEqual(t, elapser.Elapsed(), 5*time.Millisecond)

	go func() {
		_, _ = w.Write([]byte("late\n")) // the reader fails the test if it is lost
		_ = w.Close()
	}()
	line, err := p.Next(-1)
	require.NoError(t, err)
	require.Equal(t, "late", string(line))
	_, err = p.Next(-1)
	require.ErrorIs(t, err, io.EOF)
}

// A host that only writes never waits for an agent that only thinks.
func TestStdioDrains(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	p := Stdio(r, io.Discard, io.Discard)
	_, err := p.Next(0) // begins reading
	require.ErrorIs(t, err, ErrWaited)
	for range 1000 {
		_, err := w.Write([]byte("line\n"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	n := 0
	for ; err == nil || n == 0; n++ {
		_, err = p.Next(-1)
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 1001, n)
}

func TestStdioSignalsComeFirst(t *testing.T) {
	t.Parallel()
	p := newStdio(strings.NewReader("a\n"), io.Discard, io.Discard)
	line, err := p.Next(-1)
	require.NoError(t, err)
	require.Equal(t, "a", string(line))
	p.Signal(ErrTerminated)
	p.Signal(ErrInterrupted)
	_, err = p.Next(-1)
	require.ErrorIs(t, err, ErrTerminated)
	_, err = p.Next(0)
	require.ErrorIs(t, err, ErrInterrupted)
}

func TestStdioDeaf(t *testing.T) {
	t.Parallel()
	p := newStdio(&mustNotRead{t}, io.Discard, io.Discard)
	p.Deaf()
	_, err := p.Next(time.Millisecond)
	require.ErrorIs(t, err, ErrWaited)
	p.Signal(ErrTerminated)
	_, err = p.Next(-1)
	require.ErrorIs(t, err, ErrTerminated)
}

type mustNotRead struct{ t *testing.T }

func (m *mustNotRead) Read([]byte) (int, error) {
	m.t.Error("a deaf port reads")
	return 0, io.EOF
}

func TestStdioWrites(t *testing.T) {
	t.Parallel()
	var out, diag bytes.Buffer
	p := Stdio(strings.NewReader(""), &out, &diag)
	require.NoError(t, p.Write([]byte("x\n")))
	p.Stderr([]byte("y\n"))
	require.Equal(t, "x\n", out.String())
	require.Equal(t, "y\n", diag.String())
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	require.ErrorIs(t, Stdio(strings.NewReader(""), w, &diag).Write([]byte("z")), io.ErrClosedPipe)
}

// A whole conversation over byte streams.
func TestRunOverStdio(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	in := `{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}
`
	exit := Run(Launch{Seed: 1}, Stdio(strings.NewReader(in), &out, io.Discard), Config{
		Turn: func(t *Turn) error { return t.Text("you said " + t.Prompt()) },
	})
	require.Equal(t, Exit{}, exit)
	require.Equal(t, 4, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), `"result":"you said hi"`)
}
