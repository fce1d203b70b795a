package build_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
)

func TestObjectKeepsItsOrder(t *testing.T) {
	t.Parallel()
	var o, inner, empty build.Object
	inner.Set("b", 1)
	inner.Set("a", "<&>")
	o.Set("z", &inner)
	o.SetIf(false, "never", 1)
	o.SetRaw("y", json.RawMessage(`{ "k" : 1 }`), nil)
	o.Set("x", &empty)
	got, err := o.JSON()
	require.NoError(t, err)
	want := `{"z":{"b":1,"a":"<&>"},"y":{"k":1},"x":{}}`
	assert.Equal(t, []byte(want), []byte(got))
}

func TestObjectKeepsItsFirstError(t *testing.T) {
	t.Parallel()
	var o build.Object
	o.Set("a", json.RawMessage(`{`))
	o.Set("b", func() {})
	o.SetRaw("c", nil, assert.AnError)
	_, err := o.JSON()
	assert.ErrorContains(t, err, "encode a")

	var raw build.Object
	raw.SetRaw("c", nil, assert.AnError)
	_, err = raw.JSON()
	assert.ErrorIs(t, err, assert.AnError)
	_, err = protocol.Marshal(&raw)
	assert.Error(t, err)
}

func TestWithKey(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{`{}`: `{"k":1}`, `{"a":2}`: `{"a":2,"k":1}`} {
		got, err := build.WithKey(json.RawMessage(from), "k", 1)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
	_, err := build.WithKey(json.RawMessage(`{}`), "k", func() {})
	assert.Error(t, err)
}

func TestIsObject(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{`{}`: true, " \n{\"a\":1}": true, `{`: false, `[]`: false, ``: false, `{}x`: false, `"{}"`: false} {
		assert.Equal(t, want, build.IsObject([]byte(raw)), raw)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`[]`, `{"a":`, `3`} {
		_, err := build.ParseSettings([]byte(bad))
		assert.Error(t, err, bad)
	}
	s, err := build.ParseSettings([]byte(`{"a":{"list":["x",7]},"n":1.50}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "n"}, s.Keys())
	require.NoError(t, s.Append("a.list", "x", "y", "y"))
	require.NoError(t, s.Append("b.c.list"))
	require.NoError(t, s.Set("b.d", true))
	assert.Equal(t, []string{"x", "y"}, s.Strings("a.list"))
	assert.Nil(t, s.Get("n.deeper"))
	require.Error(t, s.Append("n", "x"))
	require.Error(t, s.Set("n.deeper", 1))
	doc, err := s.JSON()
	require.NoError(t, err)
	want := `{"a":{"list":["x",7,"y"]},"n":1.50,"b":{"c":{"list":[]},"d":true}}`
	assert.Equal(t, []byte(want), []byte(doc), "numbers keep their digits, and keys their order")

	empty, err := build.ParseSettings([]byte(" \n"))
	require.NoError(t, err)
	assert.Empty(t, empty.Keys())
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{`{}`, `{"permissions":{"allow":["a"]}}`, `{"permissions":[]}`, `{"permissions":{"allow":3}}`, `null`} {
		f.Add([]byte(seed), "permissions.allow", "rule")
	}
	f.Fuzz(func(t *testing.T, raw []byte, path, rule string) {
		if !utf8.ValidString(path) { // paths are ours
			return
		}
		s, err := build.ParseSettings(raw)
		if err != nil || s.Append(path, rule) != nil {
			return
		}
		assert.Contains(t, s.Strings(path), rule)
		doc, err := s.JSON()
		require.NoError(t, err)
		again, err := build.ParseSettings(doc)
		require.NoError(t, err)
		assert.Equal(t, s.Keys(), again.Keys())
	})
}
