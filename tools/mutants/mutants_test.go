package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// broken is a program with a site of each operator. Its output shows each of them.
const broken = `package main

import (
	"errors"
	"fmt"
	"sync/atomic"
)

type effect interface{ do() string }

type say string

func (s say) do() string { return string(s) }

type disk struct{ synced bool }

func (d *disk) Sync() error { d.synced = true; return errors.New("no space") }

func kind(n int) string {
	switch n {
	case 1:
		return "one"
	default:
		return "many"
	}
}

func size(n int) string {
	switch {
	case n > 7:
		return "large"
	case n+1 > 5 && n != 6:
		return "middle"
	}
	return "small"
}

func check(n int) error {
	if n > 3 {
		return fmt.Errorf("%d is too much", n)
	}
	return nil
}

func use(n int) string {
	if err := check(n); err != nil {
		return err.Error()
	}
	return "used"
}

func main() {
	var on atomic.Bool
	on.Store(true)
	fmt.Println(kind(1), kind(2), on.Load())
	fmt.Println(size(7), size(8), size(4), size(5), size(6), use(3), use(4))
	all := []effect{say("a"), say("b")}
	for _, e := range append(all, say("c"), say("d")) {
		fmt.Print(e.do())
	}
	d, n := &disk{}, 0
	n++
	fmt.Println(d.Sync(), d.synced, n)
}
`

// Each operator finds its sites, all mutants fit into one program, and each of them changes
// what it prints.
func TestEachMutantChangesTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module github.com/agent-troupe/troupe\n\ngo 1.26\n")
	write("p/main.go", broken)
	all, err := sites(dir, []string{"p"})
	require.NoError(t, err)
	var planted []*Site
	number, ops := map[*Site]int{}, map[string]int{}
	for _, s := range all {
		if !crosses(s, planted) {
			planted = append(planted, s)
			number[s] = len(planted)
			ops[s.Op]++
		}
	}
	for _, op := range operators() {
		assert.NotZero(t, ops[op], op)
	}
	require.NoError(t, plant(dir, planted, number))
	build := exec.Command("go", "build", "-o", "broken", "./p")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	run := func(n int) string {
		cmd := exec.Command(filepath.Join(dir, "broken"))
		cmd.Env = append(os.Environ(), fmt.Sprintf("TROUPE_MUTANT=%d", n))
		out, _ := cmd.CombinedOutput() // a mutant may panic
		return string(out)
	}
	plain := run(0)
	assert.Equal(t, "one many true\nmiddle large small middle small used 4 is too much\nabcdno space true 1\n", plain)
	for i, s := range planted {
		assert.NotEqual(t, plain, run(i+1), s.Key)
	}
}

// The draw of a seed is the same again, that of another seed is another one, and no place is
// in it twice.
func TestDraw(t *testing.T) {
	t.Parallel()
	s := &Site{Key: "a.go | f | negated condition | x"}
	other := &Site{Key: "a.go | f | negated condition | y"}
	assert.Equal(t, s.rank(1), s.rank(1))
	assert.NotEqual(t, s.rank(1), s.rank(2))
	assert.NotEqual(t, s.rank(1), other.rank(1))
	assert.True(t, crosses(&Site{File: "a", from: 1, to: 5}, []*Site{{File: "a", from: 3, to: 9}}))
	assert.False(t, crosses(&Site{File: "a", from: 1, to: 5}, []*Site{{File: "b", from: 3, to: 9}, {File: "a", from: 0, to: 9}, {File: "a", from: 2, to: 3}, {File: "a", from: 5, to: 9}}))
}

// The files name mutants that are still there, and an equivalent one has its argument.
func TestFilesFit(t *testing.T) {
	t.Parallel()
	all, err := sites(filepath.Join("..", ".."), subject{areas: append(areas(), loopAreas()...)}.dirs())
	require.NoError(t, err)
	sample, err := sampled(all)
	require.NoError(t, err)
	same, err := equivalents()
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, s := range all {
		keys[s.Key] = true
	}
	for key, why := range same {
		assert.True(t, keys[key], "equivalent.txt: the code of %q has changed", key)
		assert.NotEmpty(t, strings.TrimSpace(why))
	}
	for _, s := range sample {
		assert.Empty(t, same[s.Key], "%s is in the sample, and equivalent", s.Key)
	}
}

// A mutant of the sample that lives is an error, and so is an equivalent one that is found.
func TestFinish(t *testing.T) {
	t.Parallel()
	s := &Site{Key: "a.go | f | negated condition | x", Op: negated}
	lives := &table{drawn: []*Site{s}, fates: map[string]Fate{s.Key: {}}}
	require.NoError(t, lives.finish(options{}))
	require.ErrorContains(t, lives.finish(options{sample: true}), s.Key)
	found := &table{of: subject{simulations: simulations()}, drawn: []*Site{s}, fates: map[string]Fate{s.Key: {By: "reach"}}, same: map[string]string{s.Key: "nothing can notice"}}
	require.ErrorContains(t, found.finish(options{}), s.Key)
	found.same = nil
	require.NoError(t, found.finish(options{sample: true}))
}
