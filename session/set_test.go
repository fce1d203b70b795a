package session_test

import (
	"encoding/json"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/session"
)

func TestOptTellsAbsentFromZero(t *testing.T) {
	t.Parallel()
	var absent session.Opt[int]
	_, given := absent.Value()
	assert.False(t, given)
	assert.True(t, absent.IsZero())
	assert.Equal(t, 7, absent.Or(7))
	assert.Equal(t, session.Opt[int]{}, absent)
	assert.Equal(t, "absent", absent.String())

	zero := session.Some(0)
	v, given := zero.Value()
	assert.True(t, given)
	assert.Zero(t, v)
	assert.False(t, zero.IsZero())
	assert.Equal(t, 0, zero.Or(7))
	assert.Equal(t, "0", zero.String())
}

func TestSetKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set                session.Set
		word, json         string
		isDef, isNone, all bool
		names              []string
	}{
		{session.Set{}, "default", `null`, true, false, false, nil},
		{session.None(), "none", `[]`, false, true, false, nil},
		{session.Only(), "none", `[]`, false, true, false, nil},
		{session.All(), "all", `"all"`, false, false, true, nil},
		{session.Only("b", "a"), "b,a", `["b","a"]`, false, false, false, []string{"b", "a"}},
	} {
		assert.Equal(t, c.word, c.set.String())
		assert.Equal(t, c.isDef, c.set.IsDefault(), c.word)
		assert.Equal(t, c.isNone, c.set.IsNone(), c.word)
		assert.Equal(t, c.all, c.set.IsAll(), c.word)
		assert.Equal(t, c.names, c.set.Names(), c.word)
		raw, err := json.Marshal(c.set)
		require.NoError(t, err)
		assert.Equal(t, c.json, string(raw))
	}
	assert.True(t, session.All().Has("x"))
	assert.True(t, session.Only("x").Has("x"))
	assert.False(t, session.Only("x").Has("y"))
	assert.False(t, session.Set{}.Has("x"))
}

func TestSetDoesNotShareItsNames(t *testing.T) {
	t.Parallel()
	names := []string{"a"}
	set := session.Only(names...)
	names[0] = "z"
	set.Names()[0] = "y"
	assert.Equal(t, "a", set.String())
}

func TestSetRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"none"`, `3`, `{}`, `[1]`, `true`} {
		var s session.Set
		assert.Error(t, json.Unmarshal([]byte(raw), &s), raw)
		assert.Error(t, yaml.Unmarshal([]byte(raw), &s), raw)
	}
}

// config is what a configuration file holds.
type config struct {
	Turns   session.Opt[int]     `json:"turns" yaml:"turns"`
	Budget  session.Opt[float64] `json:"budget,omitzero" yaml:"budget"`
	Persist session.Opt[bool]    `json:"persist" yaml:"persist"`
	Name    session.Opt[string]  `json:"name" yaml:"name"`
	Tools   session.Set          `json:"tools" yaml:"tools"`
	Skills  session.Set          `json:"skills,omitzero" yaml:"skills"`
}

func opts[T any](g *rapid.Generator[T]) *rapid.Generator[session.Opt[T]] {
	return rapid.Custom(func(t *rapid.T) session.Opt[T] {
		if rapid.Bool().Draw(t, "given") {
			return session.Some(g.Draw(t, "value"))
		}
		return session.Opt[T]{}
	})
}

func sets() *rapid.Generator[session.Set] {
	return rapid.Custom(func(t *rapid.T) session.Set {
		return rapid.SampledFrom([]session.Set{{}, session.None(), session.All(),
			session.Only(rapid.SliceOfN(rapid.StringMatching(`[A-Za-z_]{1,9}`), 1, 4).Draw(t, "names")...)}).Draw(t, "set")
	})
}

func configs() *rapid.Generator[config] {
	return rapid.Custom(func(t *rapid.T) config {
		return config{
			Turns:   opts(rapid.IntRange(-1e9, 1e9)).Draw(t, "turns"),
			Budget:  opts(rapid.Float64Range(-1e6, 1e6)).Draw(t, "budget"),
			Persist: opts(rapid.Bool()).Draw(t, "persist"),
			Name:    opts(rapid.StringMatching(`[a-z]{1,9}`)).Draw(t, "name"),
			Tools:   sets().Draw(t, "tools"),
			Skills:  sets().Draw(t, "skills"),
		}
	})
}

func TestConfigurationSurvivesJSONAndYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := configs().Draw(t, "config")
		raw, err := json.Marshal(want)
		require.NoError(t, err)
		var got config
		require.NoError(t, json.Unmarshal(raw, &got))
		assert.Equal(t, want, got)

		raw, err = yaml.Marshal(want)
		require.NoError(t, err)
		got = config{}
		require.NoError(t, yaml.Unmarshal(raw, &got), string(raw))
		assert.Equal(t, want, got, string(raw))
	})
}

func TestDecodingReplacesWhatWasThere(t *testing.T) {
	t.Parallel()
	c := config{Turns: session.Some(3), Tools: session.All()}
	require.NoError(t, json.Unmarshal([]byte(`{"turns":null,"tools":null}`), &c))
	assert.Equal(t, config{}, c)
	c = config{Turns: session.Some(3), Tools: session.All()}
	require.NoError(t, yaml.Unmarshal([]byte("turns: null\ntools: []\n"), &c))
	assert.True(t, c.Tools.IsNone())
}
