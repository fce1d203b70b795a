package command

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// cutOff is a stdin whose writer is ended by the signal that this program gets, too.
type cutOff struct {
	text   string
	sig    os.Signal
	signal chan<- os.Signal
}

func (r *cutOff) Read(b []byte) (int, error) {
	if n := copy(b, r.text); n > 0 {
		r.text = r.text[n:]
		return n, nil
	}
	r.signal <- r.sig
	return 0, io.EOF
}

// A signal ends a batch that reads its tasks. By then it may have read a part of them.
func TestSignalWhileTasksAreRead(t *testing.T) {
	t.Parallel()
	for sig, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		for name, args := range map[string][]string{
			"here": nil, "the plan": {"--dry-run"}, "on machines": {"--nats", "nats://h:4222", "--detach"},
		} {
			t.Run(sig.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				out := filepath.Join(t.TempDir(), "out")
				args := append([]string{"batch", "-", "-O", out, "-a", "scripted"}, args...)
				w := newWorld()
				w.machines = fakeMachines{}
				w.stdin = &cutOff{`{"prompt":"one"}` + "\n" + `{"prompt":"two"}` + "\n", sig, w.signal}
				assert.Equal(t, want, w.run(args...), w.err)

				w = newWorld()
				w.machines = fakeMachines{}
				in, typed := io.Pipe()
				defer typed.Close()
				w.stdin = in
				w.signal <- sig
				assert.Equal(t, want, w.run(args...), w.err)
				assert.Contains(t, w.err.String(), "; nothing was started\n")
				assert.Empty(t, w.out.String())
				assert.NoDirExists(t, out)
			})
		}
	}
}
