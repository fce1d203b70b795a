package parity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
)

// fake is a test that is looked at from outside.
type fake struct {
	testing.TB
	name            string
	failed, skipped bool
	errors          int
	cleanups        []func()
}

func (f *fake) Helper()               {}
func (f *fake) Name() string          { return f.name }
func (f *fake) Failed() bool          { return f.failed }
func (f *fake) Skipped() bool         { return f.skipped }
func (f *fake) Errorf(string, ...any) { f.errors++ }
func (f *fake) Cleanup(c func())      { f.cleanups = append(f.cleanups, c) }

func (f *fake) end() {
	for _, c := range f.cleanups {
		c()
	}
}

func TestCovers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(parity.Variable, dir)
	for _, f := range []*fake{{name: "TestA/b"}, {name: "TestFailed", failed: true}, {name: "TestSkipped", skipped: true}} {
		parity.Covers(f, "claude/option/model")
		assert.Zero(t, f.errors)
		f.end()
	}
	covered, err := parity.ReadCovered(dir)
	require.NoError(t, err)
	assert.Equal(t, parity.Covered{"claude/option/model": {"internal/parity.TestA/b"}}, covered)
}

func TestRowsThatNobodyHasAndTooMany(t *testing.T) {
	t.Setenv(parity.Variable, "")
	f := &fake{name: "TestA"}
	parity.Covers(f, "claude/option/nothing")
	assert.Equal(t, 1, f.errors)
	parity.Covers(f, "claude/option/model", "claude/option/model", "claude/option/model", "claude/option/model", "claude/option/model",
		"claude/option/model", "claude/option/model", "claude/option/model", "claude/option/model", "claude/option/model", "claude/option/model")
	assert.Equal(t, 2, f.errors)
	parity.Covers(f)
	assert.Equal(t, 3, f.errors)
	assert.Empty(t, f.cleanups)
}

func TestFarFromTheLedger(t *testing.T) {
	t.Chdir(t.TempDir())
	f := &fatal{}
	defer func() {
		assert.Equal(t, 1, f.n)
		assert.NotNil(t, recover())
	}()
	parity.Covers(f, "claude/option/model")
}

type fatal struct {
	fake
	n int
}

func (f *fatal) Fatalf(string, ...any) { f.n++; panic("fatal") }
