package parcel_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parcel"
)

// writer writes a parcel, and does something when it gets the head of an entry with the name.
type writer struct {
	bytes.Buffer
	name string
	do   func()
}

func (w *writer) Write(b []byte) (int, error) {
	if w.do != nil && bytes.Contains(b, []byte(w.name)) {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(b)
}

// An agent may put something else in the place of a directory or a file that is being packed. It is an error or is
// left out: packing ends, and nothing from outside is in the parcel.
func TestAnAgentChangesWhatIsPacked(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, "secret", "from outside", 0o600)
	for name, put := range map[string]func(t *testing.T, at string){
		"a pipe":       func(t *testing.T, at string) { require.NoError(t, syscall.Mkfifo(at, 0o600)) },
		"a link out":   func(t *testing.T, at string) { require.NoError(t, os.Symlink(outside, at)) },
		"a link up":    func(t *testing.T, at string) { require.NoError(t, os.Symlink(".", at)) },
		"a link to it": func(t *testing.T, at string) { require.NoError(t, os.Symlink(filepath.Base(at), at)) },
		"a file":       func(t *testing.T, at string) { require.NoError(t, os.WriteFile(at, nil, 0o600)) },
		"nothing":      func(*testing.T, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, dir := root(t)
			write(t, dir, "directory/secret", "of the agent", 0o600)
			at := filepath.Join(dir, "directory")
			b := writer{name: "files/directory", do: func() {
				assert.NoError(t, os.RemoveAll(at))
				put(t, at)
			}}
			p := parcel.NewPacker(&b, limit)
			if err := p.Tree("files", from); err != nil {
				assert.NotErrorIs(t, err, io.EOF)
			}
			require.Nil(t, b.do, "it has happened")
			assert.NotContains(t, b.String(), "from outside")
		})
	}
}

// A small parcel cannot become large files, and heads without an end are not read on and on.
func TestBombs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "files"), 0o700))
	write(t, dir, "files/big", "", 0o600)
	require.NoError(t, os.Truncate(filepath.Join(dir, "files", "big"), 1<<30))
	for _, format := range []string{"gnu", "posix"} {
		c := exec.CommandContext(t.Context(), "tar", "--format="+format, "-Scf", format+".tar", "files/big")
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		f, err := os.Open(filepath.Join(dir, format+".tar"))
		require.NoError(t, err)
		to, copied := root(t)
		require.Error(t, unpack(f, to, limit))
		require.NoError(t, f.Close())
		assert.Empty(t, listing(t, copied), format)
	}

	var one bytes.Buffer
	w := tar.NewWriter(&one)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "files/" + strings.Repeat("x", 300), Format: tar.FormatPAX}))
	endless := &again{all: one.Bytes()[:1024]} // a head that speaks of the next one
	to, _ := root(t)
	require.ErrorAs(t, unpack(endless, to, limit), new(*parcel.TooLargeError))
	assert.Less(t, endless.n, 2*limit)

	many := &again{all: one.Bytes()} // empty files
	require.ErrorAs(t, drain(parcel.NewReader(many, limit)), new(*parcel.TooLargeError))
}

// The name in the parcel and the one that the caller makes of it are both checked.
func TestNamesOfTheCaller(t *testing.T) {
	t.Parallel()
	one := func(name string) io.Reader {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name}))
		require.NoError(t, w.Close())
		return &b
	}
	for _, name := range []string{"../x", "/x", ".git/config", "a/../../x", "./x"} {
		_, err := parcel.NewReader(one(name), limit).Next()
		require.ErrorAs(t, err, new(*parcel.HostileError), name)
		to, dir := root(t)
		p := parcel.NewReader(one("files/x"), limit)
		_, err = p.Next()
		require.NoError(t, err)
		require.ErrorAs(t, p.Write(to, name), new(*parcel.HostileError), name)
		assert.Empty(t, listing(t, dir))
	}
}

// A directory without permissions can be filled, and removed later.
func TestADirectoryWithoutPermissions(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "files/d/"}))
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "files/d/x", Mode: 0o600}))
	require.NoError(t, w.Close())
	to, dir := root(t)
	require.NoError(t, unpack(&b, to, limit))
	st, err := os.Stat(filepath.Join(dir, "d"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

func drain(p *parcel.Reader) error {
	for {
		if _, err := p.Next(); err != nil {
			return err
		}
	}
}

// again reads the same bytes without an end.
type again struct {
	all []byte
	n   int
}

func (r *again) Read(b []byte) (int, error) {
	n := copy(b, r.all[r.n%len(r.all):])
	r.n += n
	return n, nil
}
