package supervisor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/supervisor"
)

func TestSpecMistakes(t *testing.T) {
	t.Parallel()
	child := func(c supervisor.Child) supervisor.Spec {
		c.Name = "a"
		return supervisor.Spec{Name: "s", Children: []supervisor.Child{c}}
	}
	backoff := func(b supervisor.Backoff) supervisor.Spec { return supervisor.Spec{Name: "s", Backoff: b} }
	for want, spec := range map[string]supervisor.Spec{
		`supervisor "": the name is empty`:                                {},
		`supervisor "s": unknown strategy 4`:                              {Name: "s", Strategy: supervisor.Standard(4)},
		`supervisor "s": unknown strategy -1`:                             {Name: "s", Strategy: supervisor.Standard(-1)},
		`the intensity window is -1ns`:                                    {Name: "s", Intensity: supervisor.Intensity{Window: -1}},
		`the name of child 1 is empty`:                                    {Name: "s", Children: []supervisor.Child{{Name: "a"}, {}}},
		`supervisor "s": child "a": the name is taken`:                    {Name: "s", Children: []supervisor.Child{{Name: "a"}, {Name: "a"}}},
		`child "a": unknown class 3`:                                      child(supervisor.Child{Class: 3}),
		`child "a": a permanent child cannot be significant`:              child(supervisor.Child{Significant: true}),
		`child "a": the shutdown deadline is -2ns`:                        child(supervisor.Child{Shutdown: -2}),
		`child "a": the kill deadline is -1ns`:                            child(supervisor.Child{Kill: -1}),
		`child "a": the start deadline is -1ns`:                           child(supervisor.Child{Start: -1}),
		`child "a": the backoff begins at -2ns`:                           child(supervisor.Child{Backoff: supervisor.Backoff{Initial: -2}}),
		`a template is for SimpleOneForOne`:                               {Name: "s", Template: supervisor.Child{Class: supervisor.Transient}},
		`SimpleOneForOne lists no children`:                               {Name: "s", Strategy: supervisor.SimpleOneForOne, Children: []supervisor.Child{{Name: "a"}}},
		`the template has a name`:                                         {Name: "s", Strategy: supervisor.SimpleOneForOne, Template: supervisor.Child{Name: "a"}},
		`unknown class 5`:                                                 {Name: "s", Strategy: supervisor.SimpleOneForOne, Template: supervisor.Child{Class: 5}},
		`the backoff begins at -2ns`:                                      backoff(supervisor.Backoff{Initial: -2}),
		`the backoff is capped at -1ns`:                                   backoff(supervisor.Backoff{Max: -1}),
		`the backoff begins at 2ns, above its cap of 1ns`:                 backoff(supervisor.Backoff{Initial: 2, Max: 1}),
		`the backoff begins at 200ms, above its cap of 1ns`:               backoff(supervisor.Backoff{Max: 1}),
		`the backoff grows by the factor 0.5`:                             backoff(supervisor.Backoff{Factor: 0.5}),
		`the backoff grows by the factor NaN`:                             backoff(supervisor.Backoff{Factor: math.NaN()}),
		`the backoff grows by the factor +Inf`:                            backoff(supervisor.Backoff{Factor: math.Inf(1)}),
		`the backoff is reset after -1ns; use 0 for the default or a pos`: backoff(supervisor.Backoff{ResetAfter: -1}),
	} {
		_, err := supervisor.New(spec, seeded(1), nil)
		require.ErrorContains(t, err, want)
		var mistake *supervisor.SpecError
		require.ErrorAs(t, err, &mistake)
		assert.Equal(t, spec.Name, mistake.Supervisor)
	}
}

func TestAllMistakesAreReported(t *testing.T) {
	t.Parallel()
	_, err := supervisor.New(supervisor.Spec{Strategy: supervisor.Standard(7), Children: []supervisor.Child{{}}}, seeded(1), nil)
	require.ErrorContains(t, err, "the name is empty")
	require.ErrorContains(t, err, "strategy 7")
	require.ErrorContains(t, err, "child 0")
	_, err = supervisor.New(supervisor.Spec{Name: "s"}, nil, nil)
	assert.ErrorContains(t, err, "randomness is nil")
}

func TestSpecIsCopied(t *testing.T) {
	t.Parallel()
	spec := supervisor.Spec{Name: "s", Children: []supervisor.Child{{Name: "a"}}}
	s, err := supervisor.New(spec, seeded(1), nil)
	require.NoError(t, err)
	spec.Children[0].Name = "changed"
	assert.Equal(t, "a", s.Snapshot()[0].Name)
	assert.Zero(t, spec.Children[0].Shutdown, "and defaults are not written back")
}

func TestNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "one_for_one", supervisor.OneForOne.String())
	assert.Equal(t, "one_for_all", supervisor.OneForAll.String())
	assert.Equal(t, "rest_for_one", supervisor.RestForOne.String())
	assert.Equal(t, "simple_one_for_one", supervisor.SimpleOneForOne.String())
	assert.Equal(t, "Standard(9)", supervisor.Standard(9).String())
	assert.Equal(t, "permanent", supervisor.Permanent.String())
	assert.Equal(t, "transient", supervisor.Transient.String())
	assert.Equal(t, "temporary", supervisor.Temporary.String())
	assert.Equal(t, "Class(9)", supervisor.Class(9).String())
	for state, want := range []string{"stopped", "starting", "running", "stopping", "waiting", "stuck", "State(6)"} {
		assert.Equal(t, want, supervisor.State(state).String())
	}
}
